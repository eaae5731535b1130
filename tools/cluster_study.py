"""Studies as jobs of a cluster in a box: written and submitted by `tierscope launch`, as a person would do it on `login`.

Ranks are started by the mpirun beside this Python. Its settings are those of a machine that is smaller than it seems: as root, bound
to no core, and giving the core away while it waits.
"""

import shlex
import sys
from pathlib import Path

from tools.cluster import Cluster, ClusterError

BIN = Path(sys.executable).parent
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
SETUP = (f"export PATH={shlex.quote(str(BIN))}:$PATH", f"export {shlex.join(f'{k}={v}' for k, v in SETTINGS.items())}")


def without_mpi() -> str | None:
    """Why studies cannot span the nodes; None: they can."""
    try:
        import mpi4py  # noqa: F401, PLC0415
    except ImportError:
        return "mpi4py is not installed: make test-cluster installs it"
    return None if (BIN / "mpirun").exists() else "no mpirun beside this Python: make test-cluster installs it"


def log_of(out: Path) -> Path:
    """What a study's jobs said, whatever became of them."""
    return out.with_name(f"{out.name}.log")


def launch(cluster: Cluster, study: Path, out: Path, *arguments: str) -> int:
    """Submit a study; the number of its job. `arguments` are more for `tierscope launch`."""
    script = out.with_name(f"{out.name}.sh")
    script.unlink(missing_ok=True)
    words = [str(BIN / "tierscope"), "launch", str(study), "--with", "slurm", "--mpi", "mpirun", "--submit"]
    words += ["--out", str(out), "--script", str(script), "--program", str(BIN / "tierscope"), "--time", "10min"]
    words += ["--option", f"--output={log_of(out)}"]
    words += [word for line in SETUP for word in ("--setup", line)]
    answer = cluster.run("login", [*words, *arguments]).stdout  # Submitted batch job 7
    return int(answer.split()[-1])


def run(cluster: Cluster, study: Path, out: Path, *arguments: str, timeout_seconds: float = 240) -> None:
    """The same to its end; where it ends badly, its last words are in the error."""
    job = launch(cluster, study, out, *arguments)
    state = cluster.finished(job, timeout_seconds=timeout_seconds)["JobState"]
    if state != "COMPLETED":
        said = log_of(out).read_text().strip()[-2000:] if log_of(out).exists() else "nothing was said"
        raise ClusterError(f"job {job} of {study} is {state}: {said}")
