"""Addresses: which ones may be given to git, ssh and DataLad as the location of a dataset.

A dataset contains the addresses of its sub-datasets, so a stranger may have chosen them. git has transports that run
commands (``ext::``), and ssh takes a host that begins with a hyphen for an option (``-oProxyCommand=...``). Both are
refused here, before any of these programs sees them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from neurotier.core.errors import InputError, one_line
from neurotier.dataset.commands import TRANSPORTS, ask_git

URL = re.compile(r"(?P<ria>ria\+)?(?P<scheme>[A-Za-z][A-Za-z0-9.+-]*)://(?P<authority>[^/?#]*)")
HELPER = re.compile(r"[^/\s]*::")
"""Addresses with which git runs a helper program: ``NAME::ADDRESS``."""

LINK = "120000"
"""Mode of a symbolic link in git's trees."""

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
    described = f"its address {one_line(address)[:100]!r}"
    if not address.isprintable():
        return f"{described} has characters that addresses do not have"
    if address.startswith(("/", "./", "../")):
        return ""
    if HELPER.match(address):
        return f"{described} would run a helper of git"
    if url := URL.match(address):
        if url["scheme"].lower() not in TRANSPORTS:
            return f"{described} is of a kind that is not used here ({', '.join(TRANSPORTS)})"
        parts = url["authority"].split("@")
    else:
        parts = re.split("[@:]", address)
    if any(unquote(part).strip("[").startswith("-") for part in parts):
        return f"{described} would be read as an option"
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
    recorded, everywhere = config_of(folder, ".gitmodules"), refused_candidates(folder)
    addresses = defaultdict[str, list[str]](list)
    for key, values in recorded.items():
        name, _, last = key.rpartition(".")
        for path in recorded.get(f"{name}.path", []) if last in ("url", "datalad-url") else []:
            addresses[path] += values
    refused = {}
    for path in paths:
        reason = next(filter(None, [*map(refusal, addresses[path]), everywhere]), "")
        parts = PurePosixPath(path).parts
        if any(part.startswith("-") or part in ("..", ".git") for part in parts) or not path.isprintable():
            reason = f"its path {one_line(path)[:100]!r} would be read as an option, or leads elsewhere"
        if reason:
            refused[path] = reason
    return refused


def check_own_files(folder: Path) -> None:
    """Raise :class:`InputError` if ``.gitmodules`` or ``.datalad/config`` is a link, which git would follow."""
    for line in (ask_git(folder, "ls-tree", "HEAD", ".gitmodules", ".datalad", ".datalad/config") or "").splitlines():
        facts, _, name = line.partition("\t")
        if facts.startswith(LINK):
            raise InputError("is a link, which is not followed", folder / name)


def refused_candidates(folder: Path) -> str:
    """Why the addresses that ``.datalad/config`` adds for sub-datasets must not reach git; empty if they may."""
    for key, values in config_of(folder, ".datalad/config").items():
        if key.startswith(SUBSTITUTE):  # the first character separates pattern and replacement
            values = [value.rsplit(value[:1], 1)[-1] for value in values if value]
        if key.startswith((CANDIDATE, SUBSTITUTE)) and (reason := next(filter(None, map(refusal, values)), "")):
            return f"{reason} (.datalad/config, {one_line(key)[:80]})"
    return ""


def config_of(folder: Path, name: str) -> dict[str, list[str]]:
    """Keys and values of a committed file in git's configuration format, without the files that it includes.

    It is read from the commit, not from the work tree, where it could be a link.
    """
    listed = ask_git(folder, "config", "--null", "--no-includes", "--blob", f"HEAD:{name}", "--list")
    values = defaultdict(list)
    for entry in filter(None, (listed or "").split("\0")):
        key, _, value = entry.partition("\n")
        values[key].append(value)
    return values
