"""A real Slurm on this machine: accounting, a controller, a login node and four nodes, for tests and benchmarks.

An ordinary user submits on the login node, and jobs run as that user; :mod:`slurm_hosts` has the hosts. Slurm limits
the memory of jobs by control groups.

Everything lies in one folder, and every daemon is a child that ends with this process. Outside are control groups,
which are removed in the end, and the link ``/etc/slurm/slurm.conf``, because the executor plugin keeps ``SLURM_CONF``
from its jobs; with a dead controller behind it every call of snakemake would wait 9 s, so it is removed whatever
happens.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from slurm_configuration import ACCOUNTING, CONFIGURATION, LIMITS, MARK
from slurm_hosts import (
    CONTROL_GROUPS,
    LOGIN,
    NODE_MIB,
    NODES,
    USER,
    give,
    has_memory_limits,
    joining,
    login_script,
    node_script,
)
from support import PATIENCE_S, Project, system

LINK = Path("/etc/slurm/slurm.conf")
LOCK = Path("/var/tmp/neurotier-slurm.lock")
"""Held by the one cluster that there can be on a machine at a time: ports and the link are the same for all."""

COMMANDS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
HOSTS = (*NODES, LOGIN)


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

    @property
    def home(self) -> Path:
        """The user's home, on the file system that all hosts share."""
        return self.folder / "home"

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
                preexec_fn=die_with_parent if name in HOSTS else end_with_parent,  # there are no threads
            )

    def control_groups(self, *controllers: str) -> list[Path]:
        """The control groups that hold all nodes, of controllers that there are here."""
        folders = [CONTROL_GROUPS / controller / self.folder.name for controller in controllers]
        return [folder for folder in folders if (folder.parent / "cgroup.procs").exists()]

    def start_node(self, node: str) -> None:
        """Start a node."""
        (self.folder / "spool" / node).mkdir(parents=True, exist_ok=True)
        groups = [folder / node for folder in self.control_groups("memory", "cpuacct")]
        for group in groups:
            group.mkdir(parents=True, exist_ok=True)
            if group.is_relative_to(CONTROL_GROUPS / "memory"):
                (group / "memory.limit_in_bytes").write_text(f"{NODE_MIB}M")
        self.start(node, *joining(groups, node_script(self.folder, node)))

    def start_controller(self, *options: str) -> None:
        """Start the controller; that of Slurm 24.11 calls the login node by its name when a node of a step fails."""
        hosts = f"mount --bind {self.folder}/hosts /etc/hosts"
        self.start("slurmctld", "unshare", "--mount", "sh", "-c", f"{hosts}; exec slurmctld -D {' '.join(options)}")

    def start_login(self) -> None:
        """Start the login node."""
        up = self.folder / "login-is-up"
        up.unlink(missing_ok=True)
        self.start(LOGIN, *joining([], login_script(self.folder)))
        wait_until(up.exists, LOGIN)

    def kill_host(self, host: str) -> None:
        """Let a node or the login node die: all of its processes, and what it had in memory, at once."""
        family = psutil.Process(self.daemons[host].pid).children(recursive=True)
        self.daemons[host].kill()  # and with the first process of its name space all others
        self.daemons[host].wait()
        psutil.wait_procs(family, PATIENCE_S)

    def on_host(self, host: str, *command: str | Path) -> None:
        """Run a command that sees what a host has mounted."""
        system("nsenter", f"--target={self.first_process(host)}", "--mount", *command)

    @contextmanager
    def mounted(self, host: str, place: str | Path, *options: str | Path) -> Iterator[None]:
        """During this, a host has something else in a place."""
        self.on_host(host, "mount", *options, place)
        try:
            yield
        finally:
            self.on_host(host, "umount", place)

    def kill_job(self, node: str, job: str) -> None:
        """Kill all processes of a job before any of them notices; Slurm itself sends them a signal first.

        The script is the last to be killed: by its end Slurm learns of it, and signals those that are left.
        """
        for act, step in ((psutil.Process.suspend, 1), (psutil.Process.kill, -1)):
            for process in psutil.Process(self.daemons[node].pid).children(recursive=True)[::step]:
                with suppress(psutil.Error):
                    if process.environ().get("SLURM_JOB_ID") == job and process.username() == USER:
                        act(process)

    def project(self, name: str) -> Project:
        """A working folder of the user, whose commands are given on the login node, which may be started anew."""
        folder = self.home / name

        def before() -> list[str]:
            enter = ["nsenter", f"--target={self.first_process(LOGIN)}", "--mount", "--uts", "--pid", "--"]
            become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]
            return [*enter, *become, "env", f"--chdir={folder}", f"HOME={self.home}", f"USER={USER}", f"LOGNAME={USER}"]

        project = Project.at(folder, before)
        give(folder)
        return project

    def first_process(self, host: str) -> int:
        """Number of the first process of a host, as seen from here."""
        return psutil.Process(self.daemons[host].pid).children()[0].pid

    def shared_memory(self) -> dict[str, Path]:
        """``/dev/shm`` of every host, as its own processes see it."""
        return {host: Path(f"/proc/{self.first_process(host)}/root/dev/shm") for host in HOSTS}

    def cpu_s(self) -> float:
        """CPU time of all nodes since they were made, with their daemons, s."""
        (group,) = self.control_groups("cpuacct")
        return int((group / "cpuacct.usage").read_text()) / 1e9

    def stop(self) -> None:
        """End all jobs and daemons, nodes first, and remove control groups, link and folder."""
        if LINK.is_symlink() and LINK.readlink() == self.folder / "slurm.conf":
            LINK.unlink()  # first: whoever looks for a Slurm meanwhile would wait for a controller that does not answer
        for name, daemon in reversed(self.daemons.items()):
            if name in HOSTS:
                with suppress(psutil.Error):
                    self.kill_host(name)
                continue
            end(daemon)
        for group in self.control_groups("memory", "cpuacct"):
            for folder, _, _ in os.walk(group, topdown=False):
                with suppress(OSError):  # a process is not quite gone; an empty group does no harm
                    os.rmdir(folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def without_controller(self) -> Iterator[None]:
        """The controller is away during this, and remembers its jobs."""
        controller = self.daemons["slurmctld"]
        controller.terminate()
        controller.wait()
        try:
            yield
        finally:
            self.start_controller()
            wait_until(lambda: nodes_in("idle") + nodes_in("mixed") == len(NODES), "slurmctld")

    @contextmanager
    def configured(self, **settings: object) -> Iterator[None]:
        """During this, Slurm has other settings."""
        file = self.folder / "slurm.conf"
        usual = file.read_text()
        try:
            kept = [line for line in usual.splitlines() if line.partition("=")[0] not in settings]
            file.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in settings.items()), ""]))
            system("scontrol", "reconfigure")
            yield
        finally:
            file.write_text(usual)
            system("scontrol", "reconfigure")

    def next_job(self) -> int:
        """The number of the next job, by the controller: the accounting hears of jobs seconds later."""
        shown = system("scontrol", "show", "config")
        (number,) = re.findall(r"^NEXT_JOB_ID\s*=\s*(\d+)", shown, re.MULTILINE)
        return int(number)

    def queued(self) -> str:
        """Jobs that wait or run."""
        return system("squeue", "-h")

    def sacct(self, *columns: str, options: tuple[str, ...] = ()) -> list[list[str]]:
        """Columns of all jobs so far, one row a job."""
        command = ["sacct", "--allocations", "--noheader", "--parsable2", "--starttime=now-1day", *options]
        return [line.split("|") for line in system(*command, f"--format={','.join(columns)}").splitlines()]


def end(daemon: subprocess.Popen[bytes]) -> None:
    """End a daemon, whether it hears of that or not."""
    daemon.terminate()
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def end_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def die_with_parent() -> None:
    """The same at once, for processes that ignore other signals."""
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
def slurm() -> Iterator[Cluster]:
    """A Slurm cluster that is gone afterwards; that of another run of tests on this machine is waited for.

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
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster = Cluster(Path(tempfile.mkdtemp(prefix="neurotier-slurm-", dir="/var/tmp")))
        try:
            bring_up(cluster)
            yield cluster
        except TimeoutError as error:  # of a daemon: its last words are about to be removed
            if str(error) in cluster.daemons:
                error.add_note((cluster.folder / f"{error}.log").read_text(errors="replace")[-4000:])
            raise
        finally:
            cluster.stop()


def bring_up(cluster: Cluster) -> None:
    """Start everything, each daemon once what it needs is there."""
    folder, password = cluster.folder, secrets.token_hex(8)
    folder.chmod(0o755)
    for name in ("state", "home", "local"):
        (folder / name).mkdir()
    give(cluster.home)
    (folder / "hosts").write_text(f"127.0.0.1 localhost {' '.join(HOSTS)}\n")
    values = {"nodes": f"n[1-{len(NODES)}]", "node_mib": NODE_MIB}
    task = "task/cgroup" if has_memory_limits() else "task/none"
    (folder / "slurm.conf").write_text(MARK + CONFIGURATION.format(folder=folder, task=task, **values))
    (folder / "cgroup.conf").write_text(LIMITS.format(control_groups=CONTROL_GROUPS))
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
    system(*install, "--auth-root-authentication-method=normal")
    here = ["--no-defaults", f"--socket={database}/socket"]
    listen = ["--bind-address=127.0.0.1", "--port=13306", f"--pid-file={database}/pid"]
    size = ["--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0"]
    cluster.start("mariadbd", "mariadbd", *here, "--user=root", f"--datadir={database}", *listen, *size)
    wait_until(lambda: succeeds("mariadb-admin", *here, "ping"), "mariadbd")
    grants = (
        f"CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '{password}'; CREATE DATABASE slurm_acct_db; "
        "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';"
    )
    system("mariadb", *here, "-e", grants)

    cluster.start("slurmdbd", "slurmdbd", "-D")
    wait_until(lambda: succeeds("sacctmgr", "-n", "list", "cluster"), "slurmdbd")
    for added in (["cluster", "neurotier"], ["account", "lab"], ["user", USER, "account=lab"]):
        system("sacctmgr", "-i", "add", *added)
    cluster.start_controller("-c")
    for node in NODES:
        cluster.start_node(node)
    cluster.start_login()
    wait_until(lambda: nodes_in("idle") == len(NODES), "the nodes")


def nodes_in(state: str) -> int:
    """How many nodes are in a state; none while the controller does not answer."""
    listed = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True)
    return listed.stdout.split().count(state)
