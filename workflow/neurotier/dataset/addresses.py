"""Addresses: what may be handed to git, ssh and DataLad as the place of a dataset.

A dataset names its sub-datasets' addresses itself, so a stranger chose them. git has transports that run commands
(``ext::``), and a host that begins with a hyphen is an option to ssh (``-oProxyCommand=...``): both are refused here,
before any of these programs sees them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from neurotier.core.errors import InputError, one_line

TRANSPORTS = ("https", "http", "ssh", "git", "file")
"""Schemes of addresses that only fetch."""

URL = re.compile(r"(?P<ria>ria\+)?(?P<scheme>[A-Za-z][A-Za-z0-9.+-]*)://(?P<authority>[^/?#]*)")
HELPER = re.compile(r"[^/\s]*::")
"""How git is told to run a helper of a name: ``NAME::ADDRESS``."""

LINK = "120000"
"""Mode of a link in git's trees."""

CANDIDATE = "datalad.get.subdataset-source-candidate-"
SUBSTITUTE = "datalad.clone.url-substitute."
"""Keys of a dataset's own ``.datalad/config`` that give DataLad further addresses for sub-datasets."""


def refusal(address: str) -> str:
    """Why an address must not reach git; empty if it may.

    >>> [refusal(good) for good in ("///corr", "https://x.org/a", "git@x.org:a", "ria+ssh://me@x.org/s#~a", "../a")]
    ['', '', '', '', '']
    >>> refusal("ext::sh -c date")
    "its address 'ext::sh -c date' would run a helper of git"
    >>> refusal("ssh://-oProxyCommand=date/x")
    "its address 'ssh://-oProxyCommand=date/x' would be read as an option"
    """
    told = f"its address {one_line(address)[:100]!r}"
    if not address.isprintable():
        return f"{told} has characters that addresses do not have"
    if address.startswith("-"):
        return f"{told} would be read as an option"
    if address.startswith(("///", "/", "./", "../")):
        return ""
    if HELPER.match(address):
        return f"{told} would run a helper of git"
    url = URL.match(address)
    if url is not None:
        if url["scheme"].lower() not in TRANSPORTS:
            return f"{told} is of a kind that is not used here ({', '.join(TRANSPORTS)})"
        parts = url["authority"].split("@")
    else:
        parts = re.split("[@:]", address)
    if any(unquote(part).strip("[").startswith("-") for part in parts):
        return f"{told} would be read as an option"
    return ""


def refused_subdatasets(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """Sub-datasets whose path or addresses must not reach git, and why.

    Parameters
    ----------
    folder
        The dataset that records them.
    paths
        Their paths below it.
    """
    recorded = config_of(folder, ".gitmodules")
    names: dict[str, list[str]] = {}
    for key, values in recorded.items():
        for value in values if key.endswith(".path") else []:
            names.setdefault(value, []).append(key.removesuffix(".path"))
    everywhere = refused_candidates(folder)
    refused = {}
    for path in paths:
        parts = PurePosixPath(path).parts
        if any(part.startswith("-") or part in ("..", ".git") for part in parts) or not path.isprintable():
            refused[path] = f"its path {one_line(path)[:100]!r} would be read as an option, or leads elsewhere"
            continue
        keys = [f"{name}.{key}" for name in names.get(path, []) for key in ("url", "datalad-url")]
        reasons = [refusal(address) for key in keys for address in recorded.get(key, [])]
        found = next(filter(None, [*reasons, everywhere]), "")
        if found:
            refused[path] = found
    return refused


def check_own_files(folder: Path) -> None:
    """Raise :class:`InputError` if what tells git and DataLad about sub-datasets is a link: both would follow it."""
    command = ["git", "-C", str(folder), "ls-tree", "HEAD", ".gitmodules", ".datalad", ".datalad/config"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    for line in done.stdout.splitlines():
        facts, _, name = line.partition("\t")
        if facts.startswith(LINK):
            raise InputError("is a link, which is not followed", where=str(folder / name))


def refused_candidates(folder: Path) -> str:
    """Why addresses that a dataset's own ``.datalad/config`` makes up for sub-datasets must not reach git."""
    for key, values in config_of(folder, ".datalad/config").items():
        if key.startswith(CANDIDATE):
            addresses = values
        elif key.startswith(SUBSTITUTE):  # the first character divides pattern and replacement
            addresses = [value.rsplit(value[:1], 1)[-1] for value in values if value]
        else:
            continue
        reason = next(filter(None, map(refusal, addresses)), "")
        if reason:
            return f"{reason} (.datalad/config, {one_line(key)[:80]})"
    return ""


def config_of(folder: Path, name: str) -> dict[str, list[str]]:
    """Keys and values of a committed file in git's format; nothing that it includes is read.

    The committed text is read, and not the file, which could be a link.
    """
    command = ["git", "-C", str(folder), "config", "--null", "--no-includes", "--blob", f"HEAD:{name}", "--list"]
    done = subprocess.run(command, capture_output=True, check=False)
    found: dict[str, list[str]] = {}
    for entry in filter(None, done.stdout.decode(errors="replace").split("\0")):
        key, _, value = entry.partition("\n")
        found.setdefault(key, []).append(value)
    return found
