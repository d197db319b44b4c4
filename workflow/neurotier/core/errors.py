"""Errors for people: one line that says what is wrong, where, and what to do about it.

The exit codes are those of ``sysexits.h``, so that a caller (Snakemake, a cluster) can tell bad input, which no retry
will cure, from a full disk or a network that is down.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # the meter starts often, and this import costs a tenth of a start
    from pathlib import Path
    from typing import Any


class NeurotierError(Exception):
    """A failure that the user can understand and act on.

    Parameters
    ----------
    what
        What is wrong, as a short statement.
    where
        The file, key, tier or participant concerned, as it is printed; empty when ``what`` already says so.
    fix
        What to do next; empty when nothing sensible can be advised.

    Examples
    --------
    >>> str(InputError("image is truncated", where="sub-01_T1w.nii.gz", fix="fetch it again"))
    'sub-01_T1w.nii.gz: image is truncated; fetch it again'
    """

    exit_code = 1

    def __init__(self, what: str, where: object = "", fix: str = "") -> None:
        self.what, self.where, self.fix = map(without_credentials, (what, str(where), fix))
        super().__init__(self.what, self.where, self.fix)

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return one_line(f"{line}; {self.fix}" if self.fix else line)


class SettingsError(NeurotierError):
    """The configuration is wrong (``EX_CONFIG``)."""

    exit_code = 78


class InputError(NeurotierError):
    """The data are wrong: not BIDS, truncated, empty (``EX_DATAERR``). A retry cannot help."""

    exit_code = 65


class SourceError(NeurotierError):
    """The dataset or the content of a file is not available (``EX_UNAVAILABLE``)."""

    exit_code = 69


class TierError(NeurotierError):
    """A tier is missing, full, not writable, or not of the declared kind (``EX_CANTCREAT``)."""

    exit_code = 73


class ToolError(NeurotierError):
    """The analysis tool is missing or did not do its work (``EX_SOFTWARE``)."""

    exit_code = 70


class KilledError(ToolError):
    """A tool or a phase was killed, most often by the kernel for lack of memory (a shell's code for SIGKILL)."""

    exit_code = 137


KILLED = (137, 143)
"""Exit codes of a killed process: when memory is short, the kernel sends SIGKILL (9), and daemons send SIGTERM (15)."""


class ContainerError(NeurotierError):
    """The container engine is missing or cannot start an image (``EX_OSERR``)."""

    exit_code = 71


class RunError(NeurotierError):
    """A run of a campaign or of the incrementation failed (``EX_SOFTWARE``)."""

    exit_code = 70


class StateError(NeurotierError):
    """A file written by neurotier is damaged (``EX_DATAERR``): a disk failed, or somebody changed it.

    Parameters
    ----------
    file
        The damaged file.
    """

    exit_code = 65

    def __init__(self, file: Path) -> None:
        super().__init__("is damaged", where=file, fix="remove it and start the same command again")
        self.args = (file,)  # pickle calls the class with these


class BusyError(NeurotierError):
    """Another run holds the same results folder (``EX_TEMPFAIL``)."""

    exit_code = 75


def may_pass(exit_code: int) -> bool:
    """Whether a job that ended with this code may succeed on another attempt.

    A tier, a node or a network may recover, and a killed job may be given more memory. The same data remain bad, and
    the same tool fails on them again.

    >>> may_pass(InputError.exit_code), may_pass(TierError.exit_code), may_pass(128 + 15)
    (False, True, True)
    """
    passing = (SourceError.exit_code, TierError.exit_code, ContainerError.exit_code, BusyError.exit_code)
    return exit_code > 128 or exit_code in passing


def one_line(text: str) -> str:
    """Fold white space and escape control characters, so that any text fits on one terminal line.

    >>> one_line("a\\n  b\\x1b[31m")
    'a b\\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))


# Credentials: an address may hold a user name and a token, which git needs. Results, logs and pages are passed on to
# others, so credentials are kept only in state/source (from which jobs clone), in git's own configuration of the clone,
# and in the configurations of inner runs, which the user alone can read.

HTTP_CREDENTIALS = r"(?i)(https?://)[^\s/?#\"<>]*@"
"""User name and password of an address by HTTP, anywhere in a text; the last ``@`` before the path ends them."""

SSH_CREDENTIALS = r"(?i)(ssh://[^\s/?#\"<>:@]*):[^\s/?#\"<>]*@"
"""The password of an address by SSH, whose user name is part of the address."""


def without_credentials(text: str) -> str:
    """A text without the user names and passwords of the addresses in it, so that it is safe to keep and pass on.

    >>> without_credentials("https://me:secret@x.org:8080/a"), without_credentials("ssh://me@x.org/a")
    ('https://x.org:8080/a', 'ssh://me@x.org/a')
    >>> without_credentials("cannot clone ria+http://TOKEN@x.org/a, ask a@x.org")
    'cannot clone ria+http://x.org/a, ask a@x.org'
    """
    if "://" not in text:
        return text
    import re  # imported here: errors rarely need it, and the meter starts often

    return re.sub(SSH_CREDENTIALS, r"\1@", re.sub(HTTP_CREDENTIALS, r"\1", text))


def all_without_credentials(value: Any) -> Any:
    """Configuration values (anything JSON can hold), with :func:`without_credentials` applied to every text.

    >>> all_without_credentials({"source": "https://me:secret@x.org/a", "sites": ["A"], "attempts": 3})
    {'source': 'https://x.org/a', 'sites': ['A'], 'attempts': 3}
    """
    import json

    return json.loads(without_credentials(json.dumps(value)))
