"""Run by git-annex before it initialises a repository (``annex.pre-init-command``): it removes branches that would make
git-annex start a program that the dataset names, and notes the program, so that the clone is refused.

A dataset's ``git-annex`` branch may ask for special remotes to be enabled in every clone. For one of type ``external``,
git-annex starts ``git-annex-remote-NAME``: any program on PATH or, with a slash in its name, a file of the dataset
itself.

This file is run as a script by itself, so it imports nothing of neurotier.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHING = ("S3", "directory", "external", "git", "git-lfs", "httpalso", "rsync", "web", "webdav")
"""Types of special remotes that start at most git, rsync and ssh, and gpg if there is ``encryption=``."""

NOTE = "neurotier.refused"
"""Key in a clone's own configuration under which a finding is noted."""

OF_DATALAD = ("datalad", "datalad-archives", "ora")
"""External special remotes that are installed with DataLad."""

ELSEWHERE = re.compile(r"(https?|ssh|git)://[^-]|[\w.]+@[\w.-]+:[^:]")
"""Locations that cannot be a folder of the dataset (such a folder could be a repository with hooks)."""


OPTION = re.compile(r"(//|@)(-|%2d)", re.IGNORECASE)
"""Part of an address that ssh would take for one of its options."""


def disallowed(line: bytes) -> str:
    """What a line of ``remote.log`` would make git-annex start that is not allowed; empty if there is nothing.

    git-annex splits words at anything that Unicode counts as white space, so only printable ASCII is accepted.

    >>> disallowed(b"uuid autoenable=true externaltype=ora name=storage type=external"), disallowed(b"uuid type=rclone")
    ('', '')
    >>> disallowed(b"uuid autoenable=false externaltype=x/evil type=external")
    ''
    >>> disallowed(b"uuid autoenable=true externaltype=ora externaltype=x/evil type=external")
    'git-annex-remote-x/evil'
    >>> disallowed(b"uuid autoenable=false autoenable=true type= type=rclone")
    'rclone'
    >>> disallowed(b"u autoenable=yes location=http://x.org type=git")
    ''
    >>> disallowed(b"u autoenable=1 location=a type=git")
    'a'
    >>> disallowed(b"u autoenable=true externaltype=ora type=external url=ria+ssh://-oProxyCommand=x/y")
    'ria+ssh://-oProxyCommand=x/y'
    >>> disallowed(b"u autoenable=true externaltype=ora type=external url=ria+ssh://me@x.org/y-z")
    ''
    >>> disallowed(b"u autoenable=true\\x0bexternaltype=ora\\x0btype=external")
    'u autoenable=true\\x0bexternaltype=ora\\x0btype=external'
    >>> disallowed(b"u autoenable=true name=\\xa0")
    'u autoenable=true name=\\xa0'
    """
    text = line.decode("latin-1")
    if "autoenable" in text and not (text.isascii() and text.isprintable()):
        return text
    words = [word.partition("=")[::2] for word in text.split(" ")]
    if all(value == "false" for key, value in words if key == "autoenable"):
        return ""
    named = [f"git-annex-remote-{value}" for key, value in words if key == "externaltype" and value not in OF_DATALAD]
    named += [value for key, value in words if key == "type" and value not in FETCHING]
    named += [value for key, value in words if key == "location" and not ELSEWHERE.match(value)]
    named += [value for _, value in words if OPTION.search(value)]
    if "WEBDAV_PASSWORD" in os.environ:
        named += [f"{key}={value} with your WEBDAV_PASSWORD" for key, value in words if value == "webdav"]
    if "AWS_SECRET_ACCESS_KEY" in os.environ:
        hosts = [value for key, value in words if key == "host" and not value.endswith(".amazonaws.com")]
        named += [f"host={host} with your AWS_SECRET_ACCESS_KEY" for host in hosts]
    return next(filter(None, named), "")


def annex_hook(clone: Path) -> str:
    """A hook of git-annex (not of git) that would run in the repository that a clone was made from; empty if none.

    If that repository is on this machine, git-annex works in it, and DataLad has it work in its source, too.
    """
    known = [clone]
    for repository in known:
        url = git("-C", str(repository), "config", "remote.origin.url", check=False).decode(errors="replace").strip()
        source = (repository / (unquote(urlsplit(url).path) if url.startswith("file:") else url)).resolve()
        folder = git("-C", str(source), "rev-parse", "--path-format=absolute", "--git-common-dir", check=False)
        if url and folder and source not in known:
            if hook := min(Path(os.fsdecode(folder.strip()), "hooks").glob("*-annex"), default=None):
                return str(hook)
            known.append(source)
    return ""


def git(*words: str | bytes, check: bool = True) -> bytes:
    """Output of git in the current repository."""
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=check).stdout


def main() -> None:
    """Check all branches that git-annex would merge; if there is something to refuse, remove those of the source.

    In a repository with branches of its own, nothing is removed, but git-annex is kept from initialising it. If a clone
    is initialised already, git-annex runs this before it initialises the local repository that the clone was made from,
    and is kept from that.
    """
    if git("config", "--local", "annex.uuid", check=False).strip():
        sys.exit("git-annex has never worked in the source of this clone, so there are no contents")
    branches = [ref for ref in git("for-each-ref", "--format=%(refname)").split(b"\n") if ref.endswith(b"git-annex")]
    logs = [git("cat-file", "-p", b + b":remote.log") for b in branches if git("ls-tree", b, "remote.log")]
    if program := next(filter(None, map(disallowed, b"\n".join(logs).split(b"\n"))), "") or annex_hook(Path.cwd()):
        if not all(branch.startswith(b"refs/remotes/") for branch in branches):
            sys.exit(f"git-annex would start {program!r}")
        keys = {NOTE: program, "remote.origin.annex-ignore": "true", "datalad.install.inherit-local-origin": "false"}
        for key, value in keys.items():
            git("config", "--local", key, value)
        for branch in branches:
            git("update-ref", "-d", branch)


if __name__ == "__main__":
    main()
