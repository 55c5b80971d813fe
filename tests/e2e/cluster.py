"""A real Slurm of two nodes on this machine, with a munge of its own, for as long as the tests last.

Both nodes are this host under two names, with eight GPUs each that are `/dev/null` under other names.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
NODES: Final = ("n1", "n2")
GPUS_COUNT: Final = 8
LIMIT_S: Final = 60.0
NULL: Final = (1, 3)
"""Major and minor of /dev/null: gres.conf wants character devices."""

SLURM_CONF: Final = """\
ClusterName=specbench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/run/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
SlurmctldPort={port}
ProctrackType={proctrack}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
KillWait=5
MinJobAge=300
Waittime=0
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
SlurmdParameters=config_overrides
"""


def lacking() -> str | None:
    """Why there can be no cluster here."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"no Slurm on this machine: {', '.join(missing)} missing (Debian: slurm-wlm, munge)"
    return None if os.geteuid() == 0 else "Slurm's daemons of these tests run as root, and this is another user"


def free_ports(count: int) -> list[int]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


class Cluster:
    """The daemons. `env` makes Slurm's commands talk to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"SLURM_CONF": str(folder / "etc" / "slurm.conf")}

    def write(self) -> None:
        """Folders, key, devices, configuration."""
        for name in ("etc", "state", "log", "run", "dev", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        (self.folder / "run").chmod(0o700)
        key = self.folder / "run" / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        for index in range(GPUS_COUNT):
            os.mknod(self.folder / "dev" / f"nvidia{index}", 0o020666, os.makedev(*NULL))
        port, *node_ports = free_ports(1 + len(NODES))
        host = socket.gethostname().partition(".")[0]
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=8 RealMemory=1000 "
            f"Gres=gpu:{GPUS_COUNT} State=UNKNOWN"
            for node, node_port in zip(NODES, node_ports, strict=True)
        ]
        text = SLURM_CONF.format(host=host, folder=self.folder, port=port, proctrack=proctrack(), nodes="\n".join(nodes))
        (self.folder / "etc" / "slurm.conf").write_text(text)
        (self.folder / "etc" / "gres.conf").write_text(
            f"NodeName={','.join(NODES)} Name=gpu File={self.folder}/dev/nvidia[0-{GPUS_COUNT - 1}]\n"
        )
        (self.folder / "etc" / "cgroup.conf").write_text(
            "CgroupAutomount=yes\nCgroupPlugin=cgroup/v1\nConstrainDevices=no\n"
        )

    def start(self) -> None:
        """Until both nodes are idle."""
        run, log = self.folder / "run", self.folder / "log"
        self._call(
            "munged",
            "--force",
            f"--key-file={run}/munge.key",
            f"--socket={run}/munge.socket",
            f"--pid-file={run}/munged.pid",
            f"--log-file={log}/munged.log",
            f"--seed-file={run}/munged.seed",
        )
        self._call("slurmctld", "-f", self.env["SLURM_CONF"])
        for node in NODES:
            self._call("slurmd", "-f", self.env["SLURM_CONF"], "-N", node)
        self.wait_until(self._is_idle, "no idle nodes")

    def _is_idle(self) -> bool:
        return self.ask("sinfo", "--noheader", "--partition=gpu", "--Node", "--format=%T").split() == ["idle"] * len(NODES)

    def ask(self, *words: str) -> str:
        """Standard output of one of Slurm's commands."""
        return self._call(*words)

    def wait_until(self, is_so: "object", what: str, limit_s: float = LIMIT_S) -> None:
        """Fails after `limit_s`."""
        assert callable(is_so)
        give_up_s = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < give_up_s, f"{what}: {self.ask('squeue')} {self.ask('sinfo')}"
            time.sleep(0.2)

    def stop(self) -> None:
        """Every daemon, by its pid."""
        for name in ("slurmctld", *(f"slurmd-{node}" for node in NODES), "munged"):
            with suppress(FileNotFoundError, ValueError):
                end(int((self.folder / "run" / f"{name}.pid").read_text()))

    def _call(self, *words: str) -> str:
        done = subprocess.run(words, env=os.environ | self.env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, f"{words[0]}: {done.stderr}"
        return done.stdout


def proctrack() -> str:
    """With cgroups where they are the ones that Debian's build knows here; else by parentage."""
    return "proctrack/cgroup" if Path("/sys/fs/cgroup/freezer").is_dir() else "proctrack/linuxproc"


def end(pid: int) -> None:
    """SIGTERM, and SIGKILL when that does not do."""
    for number, patience_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        give_up_s = time.monotonic() + patience_s
        while time.monotonic() < give_up_s:
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.1)


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """From start to stop."""
    cluster = Cluster(folder)
    cluster.write()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
