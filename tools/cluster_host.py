"""What a machine needs for a cluster in a box, and how Debian gets it."""

import os
import shutil
import subprocess
from collections.abc import Mapping

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "fusermount3": "fuse3",
    "pgrep": "procps",
    "pkill": "procps",
    "mfsmaster": "moosefs-master",
    "mfschunkserver": "moosefs-chunkserver",
    "mfsmount": "moosefs-client",
    "munged": "munge",
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
}
ALSO = {"fio": "fio"}  # for one test; a cluster needs none of it
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
KERNEL_PROBE = """
ip link add name bridge type bridge
ip link add name one type veth peer name two
tc qdisc add dev one root tbf rate 1mbit burst 64kb latency 50ms
mount -t tmpfs probe /tmp
"""


def lacking() -> list[str]:
    """Why no cluster can be brought up here; nothing where it can. Leaves no trace."""
    if os.geteuid() != 0:
        return ["a cluster in a box needs root"]
    if packages := missing_packages(PACKAGES):
        return [f"not installed: {' '.join(packages)} (tools/cluster.py install)"]
    reasons = []
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        reasons.append(f"no FUSE: {error}")
    namespaces = ["--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
    probe = ["unshare", *namespaces, "sh", "-ec", KERNEL_PROBE]
    environment = {**os.environ, "PATH": PATH}
    tried = subprocess.run(probe, capture_output=True, text=True, timeout=20, check=False, env=environment)
    if tried.returncode:
        reasons.append(f"no namespaces, bridge, veth, tbf or tmpfs: {tried.stderr.strip()}")
    return reasons


def install() -> None:
    install_packages({**PACKAGES, **ALSO})


def install_packages(wanted: Mapping[str, str]) -> None:
    """What is missing, by name, from the distribution's own archive. Daemons that come with it are not started: ours are started by hand."""
    packages = missing_packages(wanted)
    if not packages:
        return
    environment = {**os.environ, "PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    patient = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120"]
    subprocess.run([*patient, "update"], check=True, env=environment)
    subprocess.run([*patient, "-y", "install", "--no-install-recommends", *packages], check=True, env=environment)


def missing_packages(wanted: Mapping[str, str]) -> list[str]:
    """Packages by what they bring: the name of a program, or the path of a file."""
    return sorted({package for tool, package in wanted.items() if not _is_there(tool)})


def _is_there(tool: str) -> bool:
    return os.path.exists(tool) if tool.startswith("/") else shutil.which(tool, path=PATH) is not None
