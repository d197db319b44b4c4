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

LOOK_AGAIN_S, LOOK_AT_MOST_S = 2.0, 3600.0
"""Pause before asking again for content that another process is fetching, and how long to wait for it in all."""


class GoneError(SourceError):
    """No copy of a content is known, so that trying again is pointless."""


def retry(action: Callable[[], None], settings: DatasetSettings, say: Callable[[str], None]) -> None:
    """Try an action that depends on a network, pausing twice as long after each failure."""
    for attempt in range(1, settings.get_attempts + 1):
        try:
            action()
            return
        except GoneError:
            raise
        except SourceError as error:
            if attempt == settings.get_attempts or not NETWORK_DOWN.search(error.what):
                raise
            pause_s = settings.get_backoff_s * 2 ** (attempt - 1)
            say(f"attempt {attempt} of {settings.get_attempts} failed ({error}); next in {pause_s:g} s")
            time.sleep(pause_s)


def wait_for_others(action: Callable[[], None], say: Callable[[str], None]) -> None:
    """Do an action that fetches contents again for as long as another process is fetching one of them."""
    until_s: float | None = None
    while True:
        try:
            action()
            return
        except SourceError as error:
            if not FETCHED_BY_ANOTHER.search(error.what):
                raise
            if until_s is None:
                until_s = time.monotonic() + LOOK_AT_MOST_S
                say(f"{error.where}: another process is fetching it; waiting")
            if time.monotonic() > until_s:
                raise
            time.sleep(LOOK_AGAIN_S)


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
