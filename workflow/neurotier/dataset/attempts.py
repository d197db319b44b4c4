"""Attempts: retry what depends on a network, and put the failures of DataLad into one line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from neurotier.core.credentials import without_credentials
from neurotier.core.errors import KilledError, SourceError, one_line
from neurotier.core.settings import DatasetSettings

NETWORK_DOWN = re.compile(
    r"could not resolve|connection (refused|reset|timed out)|timed? ?out|unreachable|temporar|network"
    r"|unable to access|HTTP (4(08|29)|5\d\d)|early EOF|SSL|download failed",
    re.IGNORECASE,
)

FETCHED_BY_ANOTHER = re.compile(r"transfer already in progress|unable to take transfer lock")
"""What git-annex prints instead of waiting when another process is fetching the same content."""

LOOK_AGAIN_S = 2.0
"""Pause before asking again for content that another process is fetching."""


def retry(action: Callable[[], None], settings: DatasetSettings, say: Callable[[str], None]) -> None:
    """Try an action that depends on a network, pausing twice as long after each failure.

    While another process fetches one of the contents that it fetches, it is tried again without counting as a failure.
    """
    attempt, is_waiting = 1, False
    while True:
        try:
            return action()
        except SourceError as error:
            if FETCHED_BY_ANOTHER.search(error.what):
                if not is_waiting:
                    say(f"{error.where}: another process is fetching it; waiting")
                is_waiting, pause_s = True, LOOK_AGAIN_S
            elif attempt >= settings.get_attempts or not NETWORK_DOWN.search(error.what):
                raise
            else:
                pause_s = settings.get_backoff_s * 2 ** (attempt - 1)
                say(f"attempt {attempt} of {settings.get_attempts} failed ({error}); next in {pause_s:g} s")
                attempt += 1
            time.sleep(pause_s)


@contextmanager
def naming_commands() -> Iterator[None]:
    """Turn exceptions of DataLad about a failed or killed git or git-annex, even on import, into an error of one line.

    Raises
    ------
    KilledError
        If the command was killed.
    SourceError
        If it failed.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("datalad."):
            raise
        if any(base.__name__ == "MissingExternalDependency" for base in type(error).__mro__):
            # DataLad asks git for its version, and reports a git that was killed as missing
            fix = "start the same command again; if that does not help, reinstall the environment"
            raise SourceError(f"does not answer: {one_line(str(error))}", where="git or git-annex", fix=fix) from None
        code = getattr(error, "code", None)
        if not isinstance(code, int):
            raise
        said = one_line(str(getattr(error, "stderr", "") or "")).strip()[:200]
        command = " ".join(map(str, getattr(error, "cmd", [])[:2]))
        if code < 0 or code > 128:
            raise KilledError(f"{command} was killed", where="git or git-annex") from None
        raise SourceError(f"{command} failed with exit code {code}: {said}", where="git or git-annex") from None


def first_message(error: Any) -> str:
    """The reason that DataLad gives for a failure, without markup and advice; git's own message if there is one."""
    return message_of(error.failed or [], str(error))


def message_of(results: Sequence[Any], otherwise: str) -> str:
    """The reason that DataLad's results give for a failure; ``otherwise`` if they give none."""
    texts = []
    for result in results:
        message = result.get("message") or result.get("error_message") or ""
        texts.append(str(message[0] % message[1:] if isinstance(message, tuple) else message))
    text = "\n".join(dict.fromkeys(filter(None, texts))) or otherwise
    fatal = re.findall(r"(?:fatal|error): ([^\n]+?)['\"\]]*(?:\n|\\n|$)", text)
    return one_line(without_credentials(fatal[-1] if fatal else text))[:300]
