"""A real Slurm on this machine: accounting, one controller and four nodes, for the tests and benchmarks that use it.

Each node has name spaces of its own, for mounts, host name and processes: it sees no process but its own, and its
``/dev/shm`` and its folder :attr:`Cluster.local`, with a small tmpfs in it, are seen by no other.

Everything lies in one folder, and every daemon is a child that ends with this process. The one thing outside is the
link ``/etc/slurm/slurm.conf``, because the executor plugin keeps ``SLURM_CONF`` from its jobs; with a dead controller
behind it every call of snakemake would wait 9 s, so it is removed whatever happens.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from support import PATIENCE_S

LINK = Path("/etc/slurm/slurm.conf")
COMMANDS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
NODES = ("n1", "n2", "n3", "n4")
MARK = "# Slurm of neurotier's tests"

CONFIGURATION = """
ClusterName=neurotier
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Without the shorter life of credentials a job whose node failed would wait two minutes before it is started again.
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
SlurmctldPort=16817
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool/%n
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
PropagateResourceLimits=NONE
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,batch_sched_delay=0,defer_batch
SchedulerType=sched/backfill
MinJobAge=600
KillWait=2
SlurmdTimeout=6
InactiveLimit=0
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=16819
AccountingStoragePass={folder}/munge.sock
DefMemPerCPU=16
NodeName={nodes} NodeHostname=localhost NodeAddr=127.0.0.1 Port=17001-17004 CPUs=24 RealMemory=5000 State=UNKNOWN
PartitionName=main Nodes={nodes} Default=YES LLN=YES MaxTime=INFINITE State=UP
"""

ACCOUNTING = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=16819
SlurmUser=root
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=13306
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


NODE = """
set -e
hostname {node}
mount --bind {folder}/hosts /etc/hosts
mkdir -p {folder}/local-{node}/memory
mount --bind {folder}/local-{node} {folder}/local
mount -t tmpfs -o size={memory_mib}m memory {folder}/local/memory
mount -t tmpfs -o size={memory_mib}m,mode=1777 memory /dev/shm
slurmd -D -N {node} &
wait
"""
"""What starts a node; the shell is the first process of its name space, and clears away children of others."""

MEMORY_MIB = 400
"""Size of each tmpfs of a node."""


class NotHereError(Exception):
    """Slurm cannot be started here; the text says why."""


@dataclass
class Cluster:
    """The running daemons."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def local(self) -> Path:
        """A folder that each node has for itself, with a tmpfs ``memory``; here it is empty."""
        return self.folder / "local"

    def start(self, name: str, *command: str) -> None:
        """Start a daemon, to end when this process ends."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")},
                start_new_session=True,
                preexec_fn=die_with_parent if name in NODES else end_with_parent,  # there are no threads
            )

    def start_node(self, node: str) -> None:
        """Start a node."""
        (self.folder / "spool" / node).mkdir(parents=True, exist_ok=True)
        self.local.mkdir(exist_ok=True)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost {' '.join(NODES)}\n")
        spaces = ["unshare", "--mount", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child"]
        script = NODE.format(folder=shlex.quote(str(self.folder)), node=node, memory_mib=MEMORY_MIB)
        self.start(node, *spaces, "sh", "-c", script)

    def kill_node(self, node: str) -> None:
        """A node dies: its daemon and all processes of its jobs, at once."""
        family = psutil.Process(self.daemons[node].pid).children(recursive=True)
        self.daemons[node].kill()  # and with the first process of its name space all others
        self.daemons[node].wait()
        psutil.wait_procs(family, PATIENCE_S)

    def stop(self) -> None:
        """End all jobs and daemons, nodes first, and remove the link."""
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["scancel", "--signal=KILL", "--full", "--user=root"], timeout=10, capture_output=True)
        for name, daemon in reversed(self.daemons.items()):
            daemon.kill() if name in NODES else daemon.terminate()  # unshare passes no signal on
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if is_ours():
            LINK.unlink()

    def sacct(self, *columns: str, options: tuple[str, ...] = ()) -> list[list[str]]:
        """Columns of all jobs so far, one row a job."""
        command = ["sacct", "--allocations", "--noheader", "--parsable2", "--starttime=now-1day", *options]
        listed = subprocess.run([*command, f"--format={','.join(columns)}"], capture_output=True, text=True, check=True)
        return [line.split("|") for line in listed.stdout.splitlines()]


def end_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def die_with_parent() -> None:
    """The same at once, for what passes over other signals."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def is_ours() -> bool:
    """Whether the link of this machine's Slurm is one that these tests made."""
    if not LINK.is_symlink():
        return False
    target = LINK.readlink()
    return not target.exists() or target.read_text().startswith(MARK)


def wait_until(ready: Callable[[], bool], name: str) -> None:
    """Wait for a daemon."""
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(name)
        time.sleep(0.1)


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


@contextmanager
def slurm(folder: Path) -> Iterator[Cluster]:
    """A Slurm cluster that is gone afterwards.

    Raises
    ------
    NotHereError
        Without root, without the Debian packages, or if this machine has a Slurm of its own.
    """
    if os.getuid() != 0:
        raise NotHereError("starting a Slurm needs root")
    lacking = [command for command in COMMANDS if shutil.which(command) is None]
    if lacking:
        raise NotHereError(f"{', '.join(lacking)} not installed (tests/set_up.sh does that)")
    if os.path.lexists(LINK) and not is_ours():
        raise NotHereError(f"this machine has a Slurm of its own: {LINK}")
    cluster = Cluster(folder)
    try:
        bring_up(cluster)
        yield cluster
    finally:
        cluster.stop()


def bring_up(cluster: Cluster) -> None:
    """Start everything, each when what it needs is there."""
    folder, password = cluster.folder, secrets.token_hex(8)
    (folder / "state").mkdir(parents=True)
    nodes = f"n[1-{len(NODES)}]"
    (folder / "slurm.conf").write_text(MARK + CONFIGURATION.format(folder=folder, nodes=nodes))
    (folder / "slurmdbd.conf").touch(mode=0o600)
    (folder / "slurmdbd.conf").write_text(ACCOUNTING.format(folder=folder, password=password))
    LINK.parent.mkdir(exist_ok=True)
    LINK.unlink(missing_ok=True)
    LINK.symlink_to(folder / "slurm.conf")

    key, socket = folder / "munge.key", folder / "munge.sock"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    places = [
        f"--key-file={key}",
        f"--socket={socket}",
        f"--pid-file={folder}/munged.pid",
        f"--seed-file={folder}/seed",
    ]
    cluster.start("munged", "munged", "--foreground", "--force", *places)

    database = folder / "mysql"
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={database}", "--user=root", "--skip-test-db"]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    here = ["--no-defaults", f"--socket={database}/socket"]
    listen = ["--bind-address=127.0.0.1", "--port=13306", f"--pid-file={database}/pid"]
    size = ["--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0"]
    cluster.start("mariadbd", "mariadbd", *here, "--user=root", f"--datadir={database}", *listen, *size)
    wait_until(lambda: succeeds("mariadb-admin", *here, "ping"), "mariadbd")
    grants = (
        f"CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '{password}'; CREATE DATABASE slurm_acct_db; "
        "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';"
    )
    subprocess.run(["mariadb", *here, "-e", grants], check=True, capture_output=True)

    cluster.start("slurmdbd", "slurmdbd", "-D")
    wait_until(lambda: succeeds("sacctmgr", "-n", "list", "cluster"), "slurmdbd")
    subprocess.run(["sacctmgr", "-i", "add", "cluster", "neurotier"], check=True, capture_output=True)
    cluster.start("slurmctld", "slurmctld", "-D", "-c")
    for node in NODES:
        cluster.start_node(node)
    wait_until(lambda: nodes_in("idle") == len(NODES), "the nodes")


def nodes_in(state: str) -> int:
    """How many nodes are in a state."""
    listed = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True)
    return listed.stdout.split().count(state)
