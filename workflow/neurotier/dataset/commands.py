"""Calls of git, git-annex and DataLad: they never ask the user, are retried, and have their failures explained.

Any failure of these programs becomes an error of one line.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from neurotier.core.errors import KilledError, SourceError, one_line, without_credentials
from neurotier.core.files import Record, exclusive
from neurotier.core.installed import search_path
from neurotier.core.processes import start_process
from neurotier.core.settings import DatasetSettings, Say
from neurotier.dataset.special_remotes import disallowed

TRANSPORTS = ("https", "http", "ssh", "git", "file")
"""Schemes of addresses that can only fetch."""

TRANSIENT = re.compile(
    r"could not resolve|connection (refused|reset|timed out)|timed? ?out|unreachable|temporar|network"
    r"|unable to access|fetch failed|HTTP (4(08|29)|5\d\d)|early EOF|SSL|download failed|verification of content failed"
    r"|git-annex gave no reason|database is locked|(?<!/)\.git/annex/(tmp|objects)/.* does not exist",
    re.IGNORECASE,
)
"""Failures that a retry may cure: of a network, where a proxy may send a page in place of the content; or because
another git-annex fetched or dropped the same content at that moment."""

FETCHED_BY_ANOTHER = re.compile(r"transfer already in progress|unable to take transfer lock")
"""What git-annex prints instead of waiting when another process is fetching the same content."""

UNEXPLAINED = "git-annex gave no reason"

LOOK_AGAIN_S = 2.0
"""Pause before asking again for content that another process is fetching."""

TOGETHER = 2000
"""Most files per command: Linux usually allows 2 MiB of arguments and environment."""

WITH_TREE = re.compile(r"(\w[\w-]{35}) .*exporttree=yes")
"""Line of ``remote.log`` about a special remote that holds an exported tree, with its identifier. The line comes from
the dataset: git-annex could take an identifier of another form for an option, and run a program."""

NO_ANNEX = "First run: git-annex init"
"""Message of git-annex in a repository that it has not initialised."""

OVERRULED = {
    "annex.pre-init-command": shlex.join([sys.executable, "-I", str(Path(__file__).with_name("special_remotes.py"))]),
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "annex.freezecontent-command": "true",
    "annex.thawcontent-command": "true",
    "clone.defaultRemoteName": "origin",
    "commit.gpgSign": "false",  # nobody is there to type a passphrase
}
"""Settings of git that are overruled. With most of them, the repository that a dataset is cloned from could make git
and git-annex run commands: to get contents from a path on this machine, git-annex works in that repository. The first
runs our check of what a dataset would have git-annex start. The name of the remote is fixed, since clones are asked for
their source by it."""

OF_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
"""Variables that git sets for its hooks and for ``git rebase --exec``: with them, git works in that repository only."""

KILLED = re.compile(r"exited -\d")
"""Message of git-annex about a git that was killed by a signal."""


def prepare_environment() -> None:
    """Prepare this process and its children; to be called before DataLad is imported.

    Variables set by the user are kept. git-annex is installed from a wheel, next to Python. A git identity is set only
    if there is none, since git-annex cannot record the location of a clone without one.

    Raises
    ------
    SourceError
        If git is not installed.
    """
    if shutil.which("git") is None:
        raise SourceError("git is not installed", fix="install git; DataLad needs it")
    os.environ["PATH"] = search_path("PATH", Path(sys.executable).parent, unset=os.defpath)
    for variable in OF_REPOSITORY:
        os.environ.pop(variable, None)
    for variable, value in {
        "GIT_TERMINAL_PROMPT": "0",
        "SSH_ASKPASS": "false",  # nobody is there to type a password, or to say whether a host can be trusted
        "SSH_ASKPASS_REQUIRE": "force",
        "DATALAD_LOG_LEVEL": "critical",
        "DATALAD_UI_PROGRESSBAR": "none",
        # A firewall may drop a connection silently; its two ends would then wait for each other.
        "GIT_HTTP_LOW_SPEED_LIMIT": "1",
        "GIT_HTTP_LOW_SPEED_TIME": "120",
        # Whatever a dataset's own configuration says, only fetch, and make clones that share nothing with their source.
        "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS),
        "DATALAD_CLONE_RECKLESS": "",
    }.items():
        os.environ.setdefault(variable, value)
    count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    added = OVERRULED.keys() - {os.environ.get(f"GIT_CONFIG_KEY_{number}") for number in range(count)}
    for number, key in enumerate(added, start=count):
        os.environ |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": OVERRULED[key]}
    os.environ["GIT_CONFIG_COUNT"] = str(count + len(added))
    for key, value in {"name": "neurotier", "email": "neurotier@localhost"}.items():
        if ask_git(Path("/"), "config", f"user.{key}") is None:
            for who in ("AUTHOR", "COMMITTER"):
                os.environ.setdefault(f"GIT_{who}_{key.upper()}", value)


def call_git(repository: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Call git in this repository, never in one above it, and in English, since its messages are searched.

    Raises
    ------
    KilledError
        If it was killed or got no memory: then its failure says nothing about the repository.
    """
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        env={
            **os.environ,
            "GIT_CEILING_DIRECTORIES": str(repository.absolute().parent),
            "LANGUAGE": "en",
            **variables,
        },
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode in (-9, -15) or "Cannot allocate memory" in done.stderr:
        raise KilledError(
            "git was killed, or got no memory",
            repository,
            "see the limits (ulimit -a), and start the same command again",
        )
    return done


def ask_git(repository: Path, *arguments: str, **variables: str) -> str | None:
    """Output of a git command called by :func:`call_git`, without the final line feed; ``None`` if it fails."""
    done = call_git(repository, *arguments, **variables)
    return None if done.returncode else done.stdout.removesuffix("\n")


def ask_annex(dataset: Path, command: str, paths: Sequence[str], *options: str) -> tuple[list[Record], str]:
    """Have git-annex run a command on files of a dataset, in the repository of each file.

    It is called directly, since a killed ``git annex`` would leave it running. Unlike git, it takes names literally.

    Returns
    -------
    list, str
        What git-annex says about each annexed file; and one line with the reasons of all failures, if any failed.

    Raises
    ------
    SourceError
        If a file is in no repository, or in one without an annex, git is missing, or git-annex does not start.
    KilledError
        If git-annex, or a git that it called, was killed.
    """
    prepare_environment()
    below = defaultdict(list)
    for number, path in enumerate(paths):
        root, name = in_repository(dataset, path)
        below[root, number // TOGETHER].append(name)
    records = []
    reasons = list[str]()
    for (root, _), names in below.items():
        start = partial(
            start_process,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            errors="replace",
        )
        # When git-annex first uses a special remote that holds a tree, it reads what is in that tree; if two processes
        # do so at once, one waits for ever. So each process asks first, in turn, for a key that is in no tree: that
        # makes git-annex read the tree, without the network (unless the remote holds other objects: annexobjects=yes).
        for line in (ask_git(root, "cat-file", "blob", "refs/heads/git-annex:remote.log") or "").split("\n"):
            # a password may have been set since this clone was made
            if (dataset / ".git/neurotier").exists() and (sent := disallowed(line.encode())):
                raise SourceError(f"git-annex would use {sent!r} where the dataset tells it to: unset that", paths[0])
            if remote := WITH_TREE.match(line):
                # git-annex itself reports below what cannot be written
                with suppress(OSError), exclusive(root / ".git" / "exports"):
                    start(["git-annex", "checkpresentkey", "SHA256-s0--none", remote[1]]).communicate()
        try:
            process = start(["git-annex", command, *options, "--json", "--json-error-messages", "--", *names])
        except OSError as error:
            raise SourceError(f"does not answer: {error.strerror}", "git-annex", "reinstall the environment") from None
        out, complaints = process.communicate()
        if not 0 <= process.returncode <= 128 or KILLED.search(complaints):
            raise KilledError(f"git-annex {command} was killed", "git or git-annex")
        if NO_ANNEX in complaints:
            if command == "drop":  # content in git itself is kept
                continue
            raise SourceError("its content is not there: its repository has no annex", paths[0])
        # other lines are messages of a special remote, or the empty line before an error message
        own = [json.loads(line) for line in out.split("\n") if '"success":' in line]
        failed = [record for record in own if not record["success"]]
        for record in failed:
            copies = (
                f"a copy is in {one['description']} (unless external, follow `git annex enableremote` in the clone)"
                for one in record.get("wanted", ())
            )
            reasons += record["error-messages"] or [*filter(None, [record.get("note"), *copies])] or [UNEXPLAINED]
        if process.returncode and not failed:
            reasons.append(complaints)
        records += own
    return records, one_line(without_credentials("; ".join(dict.fromkeys(reasons))))[:300]


def in_repository(dataset: Path, path: str) -> tuple[Path, str]:
    """The repository that holds a file (the dataset, or a sub-dataset) and its path there; or :class:`SourceError`."""
    for parent in PurePath(path).parents:
        if (dataset / parent / ".git").exists():
            return dataset / parent, str(PurePath(path).relative_to(parent))
    raise SourceError("is not in the dataset", path)


def retry(action: Callable[[], None], settings: DatasetSettings, say: Say) -> None:
    """Try an action that depends on a network, doubling the pause after each failure.

    If another process is fetching some of the same contents, the action is repeated without counting this as a failure.
    """
    attempt, is_waiting = 1, False
    while True:
        try:
            return action()
        except SourceError as error:
            reason = error.what.partition("; a copy is in ")[0]  # then follows a description, which may be any text
            if FETCHED_BY_ANOTHER.search(reason):
                if not is_waiting:
                    say(f"{error.where}: another process is fetching it; waiting")
                is_waiting, pause_s = True, LOOK_AGAIN_S
            elif attempt >= settings.get_attempts or not TRANSIENT.search(reason):
                raise
            else:
                pause_s = settings.get_backoff_s * 2 ** (attempt - 1)
                say(f"attempt {attempt} of {settings.get_attempts} failed ({error}); next in {pause_s:g} s")
                attempt += 1
            time.sleep(pause_s)


@contextmanager
def datalad_errors(problem: str = "failed", where: str = "DataLad", fix: str = "") -> Iterator[None]:
    """Turn any exception of DataLad, even on import, into an error of one line; all its calls are made within this.

    Parameters
    ----------
    problem, where, fix
        What to say, before the reason, if DataLad could not do something; not used if a git command fails or is killed.

    Raises
    ------
    KilledError
        If git or git-annex was killed.
    SourceError
        If one of these, or DataLad itself, failed.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("datalad."):
            raise
        names, code = {base.__name__ for base in type(error).__mro__}, getattr(error, "code", None)
        if {"IncompleteResultsError", "NoDatasetFound"} & names:
            reason = message_of(getattr(error, "failed", None) or [], str(error))
            raise SourceError(f"{problem}: {reason}", where, fix) from None
        if "MissingExternalDependency" in names:
            # DataLad asks git for its version, and reports a git that was killed as missing
            raise SourceError(
                f"does not answer: {one_line(str(error))}",
                "git or git-annex",
                "start the same command again; if that does not help, reinstall the environment",
            ) from None
        if not isinstance(code, int):
            raise
        said = getattr(error, "stderr", "") or getattr(error, "stdout", "") or "it gives no reason"
        words = map(str, getattr(error, "cmd", []))
        command = " ".join([word for word in words if word[:1] != "-" and "=" not in word][:2])  # without git's options
        if not 0 <= code <= 128:
            raise KilledError(
                f"{command} was killed",
                "git or git-annex",
                "see whether memory is short or a tier full, and start the same command again",
            ) from None
        reason = one_line(str(said))[:200]
        raise SourceError(f"{command} failed with exit code {code}: {reason}", "git or git-annex") from None


def message_of(results: Sequence[Any], otherwise: str) -> str:
    """The reason for a failure in DataLad's results; ``otherwise`` if they give none.

    For a repository of another user, this is git's advice on ownership, not the "could not read" that follows it.
    """
    texts = []
    for result in results:
        message = result.get("message") or result.get("error_message") or ""
        texts.append(str(message[0] % message[1:] if isinstance(message, tuple) else message))
    text = "\n".join(dict.fromkeys(texts)) or otherwise
    fatal = re.findall(
        r"(?:fatal|error): (?!unable to read askpass)(detected dubious(?s:.*?)safe\.directory [^\n]+|[^\n]+?)['\"\]]*"
        r"(?:\n|\\n|$)(?:fatal: Could not read from remote.*)?",
        text,
    )
    return one_line(without_credentials(next(filter(TRANSIENT.search, fatal), fatal[0]) if fatal else text))[:300]
