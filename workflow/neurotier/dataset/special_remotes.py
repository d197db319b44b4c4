"""What git-annex is given to run before it makes a clone its own (``annex.pre-init-command``): it takes away what would
have it start a program that the dataset names, and notes it, so that the clone is refused.

A dataset's ``git-annex`` branch may ask for special remotes to be enabled in every clone. For one of type ``external``,
git-annex starts ``git-annex-remote-NAME``: any from PATH, and with a slash in its name a file of the dataset itself.

It is run as a file by itself, and so imports nothing of neurotier.
"""

from __future__ import annotations

import subprocess
import sys

FETCHING = ("S3", "directory", "external", "git", "git-lfs", "httpalso", "rsync", "web", "webdav")
"""Types of special remotes that start at most git, rsync and ssh."""

NOTE = "neurotier.refused"
"""Key of a clone's own configuration for what was found."""

OF_DATALAD = ("datalad", "datalad-archives", "ora")
"""External ones that are installed with DataLad."""


def refused(line: str) -> str:
    """What a line of ``remote.log`` would have git-annex start; empty if it may.

    >>> refused("uuid autoenable=true externaltype=ora name=storage type=external"), refused("uuid type=rclone")
    ('', '')
    >>> refused("uuid autoenable=true externaltype=ora externaltype=x/evil type=external")
    'git-annex-remote-x/evil'
    """
    words = [word.partition("=")[::2] for word in line.split()]
    if not any(key == "autoenable" for key, _ in words):
        return ""
    named = [f"git-annex-remote-{value}" for key, value in words if key == "externaltype" and value not in OF_DATALAD]
    return (named + [value for key, value in words if key == "type" and value not in FETCHING] + [""])[0]


def git(*words: str) -> str:
    """Output of git in the repository at hand."""
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout


def main() -> None:
    """Look at all branches that git-annex would merge; if there is something to refuse, remove those of the source.

    In a repository that git-annex has worked in, nothing is removed, but it is not to begin anew there.
    """
    branches = [ref for ref in git("for-each-ref", "--format=%(refname)").splitlines() if ref.endswith("git-annex")]
    logs = [
        git("cat-file", "-p", f"{branch}:remote.log") for branch in branches if git("ls-tree", branch, "remote.log")
    ]
    if program := next(filter(None, map(refused, "\n".join(logs).splitlines())), ""):
        if not all(branch.startswith("refs/remotes/") for branch in branches):
            sys.exit(f"its special remotes would have git-annex start {program!r}")
        git("config", "--local", NOTE, program)
        for branch in branches:
            git("update-ref", "-d", branch)


if __name__ == "__main__":
    main()
