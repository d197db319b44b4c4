"""A slow network file system on one machine: sshfs from a network namespace whose only link has a limited rate.

Needs root and Debian's packages sshfs, openssh-server and iproute2; nothing of it is left afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from support import system, wait_for

TAKEN = {address.address for addresses in psutil.net_if_addrs().values() for address in addresses}
NUMBER = next(n for n in range(os.getpid() % 200, 256) if f"10.213.{n}.1" not in TAKEN)
"""Tells the link of this process from those of others, also of those that were killed and have left theirs."""

HERE, THERE = f"10.213.{NUMBER}.1", f"10.213.{NUMBER}.2"
PORT = 2222


def available() -> bool:
    """Whether this machine can have one."""
    programs = ("ip", "tc", "sshfs", "ssh-keygen", "fusermount3")
    return os.geteuid() == 0 and all(map(shutil.which, programs)) and Path("/usr/sbin/sshd").exists()


@contextmanager
def slow_network_folder(rate: str, *options: str) -> Iterator[Path]:
    """A folder whose files come over a link of so much, such as ``400mbit``.

    With ``no_contain_symlinks`` of a newer sshfs links may lead upwards, as those of git-annex do.
    """
    with tempfile.TemporaryDirectory(prefix="neurotier-network-", dir="/var/tmp") as name:
        folder = Path(name)
        served, mounted = folder / "served", folder / "mounted"
        served.mkdir()
        mounted.mkdir()
        space = f"neurotier-{os.getpid()}"
        server = None
        try:
            link(space, rate)
            server = serve(folder, space)
            mount(folder, served, mounted, options)
            yield mounted
        finally:
            with suppress(subprocess.CalledProcessError):
                system("fusermount3", "-u", "-z", str(mounted))
            if server is not None:
                server.terminate()
                server.wait()
            with suppress(subprocess.CalledProcessError):
                system("ip", "netns", "del", space)


def link(space: str, rate: str) -> None:
    """Two ends of a cable, one here and one in a namespace, each sending no faster than the rate."""
    here, there = f"nt{NUMBER}a", f"nt{NUMBER}b"
    system("ip", "netns", "add", space)
    system("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
    for inside, end, address in (([], here, HERE), (["-n", space], there, THERE)):
        system("ip", *inside, "addr", "add", f"{address}/24", "dev", end)
        system("ip", *inside, "link", "set", end, "up")
    shape = ["root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
    system("tc", "qdisc", "add", "dev", here, *shape)
    system("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", there, *shape)


def serve(folder: Path, space: str) -> subprocess.Popen[bytes]:
    """An SSH server in the namespace, with keys of its own."""
    for key in ("host", "user"):
        system("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    lines = [
        *(f"HostKey {folder / 'host'}", f"AuthorizedKeysFile {folder / 'authorized_keys'}", "StrictModes no"),
        *("PermitRootLogin prohibit-password", "UsePAM no", "PidFile none", f"ListenAddress {THERE}:{PORT}"),
        "Subsystem sftp internal-sftp",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    command = ["ip", "netns", "exec", space, "/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mount(folder: Path, served: Path, mounted: Path, more: Sequence[str]) -> None:
    """Mount the served folder, as soon as the server answers."""
    options = [
        *more,
        *(f"port={PORT}", f"IdentityFile={folder / 'user'}", "StrictHostKeyChecking=no", "BatchMode=yes"),
        *(f"UserKnownHostsFile={folder / 'known_hosts'}", "kernel_cache", "auto_cache", "allow_other"),
    ]
    command = ["sshfs", f"root@{THERE}:{served}", str(mounted), "-o", ",".join(options)]
    wait_for(lambda: subprocess.run(command, capture_output=True).returncode == 0, within_s=120)
