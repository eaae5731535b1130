"""Slurm in a folder: one controller, one slurmd per node, and a munged that only they know."""

import os
from collections.abc import Mapping
from pathlib import Path

CREDENTIAL_SECONDS = 5  # a requeued job waits for this long (default: 120 s); Slurm ignores less than 5


def write_munge(folder: Path) -> None:
    folder.mkdir(parents=True)
    key = folder / "key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))


def munged(folder: Path) -> list[str]:
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    return ["munged", "--force", *(f"--{option}={folder / name}" for option, name in files.items())]


def write_settings(state: Path, login: tuple[str, str], nodes: Mapping[str, str], cpus_per_node: int) -> None:
    """slurm.conf in a cluster's folder, for nodes given as name → address.

    Slurm counts time limits in minutes and looks for jobs beyond theirs every 30 s; neither can be set.
    """
    name, address = login
    work, logs, munge = state / "slurm", state / "log", state / "munge"
    (work / "state").mkdir(parents=True)
    lines = [
        "ClusterName=tsc",
        f"SlurmctldHost={name}({address})",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={munge / 'socket'},cred_expire={CREDENTIAL_SECONDS}",
        f"StateSaveLocation={work / 'state'}",
        f"SlurmctldPidFile={work / 'slurmctld.pid'}",
        f"SlurmctldLogFile={logs / 'slurmctld.log'}",
        f"SlurmdSpoolDir={work / '%n'}",
        f"SlurmdPidFile={work / '%n.pid'}",
        f"SlurmdLogFile={logs / 'slurmd-%n.log'}",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "AccountingStorageType=accounting_storage/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2",
        "SlurmdParameters=config_overrides",
        "MpiDefault=none",
        "JobRequeue=1",
        "KillWait=5",
        "OverTimeLimit=0",
        "SlurmdTimeout=60",
        "ReturnToService=2",
        "MailProg=/bin/true",
        *(f"NodeName={node} NodeAddr={at} CPUs={cpus_per_node} RealMemory=1000" for node, at in nodes.items()),
        f"PartitionName=all Nodes={','.join(nodes)} Default=YES MaxTime=INFINITE State=UP",
    ]
    (state / "slurm.conf").write_text("\n".join(lines) + "\n")


def slurmctld(settings: Path) -> list[str]:
    return ["slurmctld", "-c", "-f", str(settings)]


def slurmd(settings: Path, node: str) -> list[str]:
    return ["slurmd", "-f", str(settings), "-N", node]
