"""Logger plugin ``neurotier``: a terminal with few lines, which say what is done, what went wrong, and how a run ended.

The profiles choose it (``logger: neurotier``). All of Snakemake's messages are in its own log below ``.snakemake/log``;
they are on the terminal, too, in dry runs, with ``--verbose`` and with ``--printshellcmds``. Snakemake finds a plugin
by the name of its package, so this package is next to neurotier, not in it.
"""

from __future__ import annotations

import errno
import logging
import re
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from snakemake.logging import ColorizingTextHandler
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

SAY_S = 30.0
"""Shortest time between two lines about jobs of one rule, or about the number of steps done, s."""

SAID_OTHERWISE = ("CalledProcessError in file", "Exiting because a job", "At least one job did not complete")
"""Messages about errors that the line about the failed rule, or the end of the run, reports as well."""

BAD_CONFIG, NO_CONFIG = "Invalid config definition: ", "FileNotFoundError: [Errno 2] "
"""How the last line begins in two of Snakemake's traces, which it shows before it reads the Snakefile."""

NOT_SUBMITTED = "Exception in run_job for rule "
"""How the plugin slurm's message begins, followed by a trace, about a job for which it does not call sbatch, for
example because of a forbidden option."""

UNWRITABLE = "|".join(
    str(getattr(errno, name)) for name in ("ENOSPC", "EDQUOT", "EACCES", "EROFS", "ENOTDIR", "ESTALE", "EIO", "EFBIG")
)

NO_ROOM = re.compile(
    rf"(?:Error: |\(|line \d+:\n(?=.*\.snakemake/))\[Errno (?:{UNWRITABLE})\] ([^:\n]*)(?:: '(.*)')?"
    r"(?:$|\n  File|\)\. Please ensure)"
)
"""The essential line of what Snakemake shows, perhaps a trace, if it cannot write a rule's folder or log, its files in
the home folder, or its metadata (for which it advises to check the permissions)."""

OWN_PLACES = "Snakemake's folders (.cache/snakemake in your home, .snakemake here)"

OF_THE_MACHINE = {
    "can't start new thread": "no more memory, threads or processes; see the limits (ulimit -a)",
    "has older modification time": "the clock was set back, or the clocks of two machines differ; set them right",
}
"""Words in traces and advice of Snakemake about this machine, and what to print instead."""

NO_METADATA = "Missing metadata for file"
"""Snakemake says this about every file in a report, perhaps dozens, that was made for a failed run's page or by another
user."""

NOT_MADE = re.compile(r"File (.*) marked for report but does not exist")

HOW_CONFIG = "Write --config 'dataset={source: X}' for dataset.source=X, and targets before --config."


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """Prints a line for each event that the user needs to know; if no jobs begin, as with ``--unlock``, it prints what
    Snakemake would."""

    writes_to_stream, writes_to_file = True, False
    has_filter, has_formatter, needs_rulegraph = False, False, False

    def __post_init__(self) -> None:
        asked = self.common_settings
        stream = sys.stdout if asked.stdout else sys.stderr
        self.everything = ColorizingTextHandler(nocolor=asked.nocolor, stream=stream)
        self.is_calm = not (asked.verbose or asked.dryrun or asked.printshellcmds or asked.debug_dag)
        self.has_begun, self.pages = False, list[Path]()
        self.early: list[logging.LogRecord] = []
        self.said_s = {"": time.monotonic()}
        sys.excepthook = say_uncaught

    def setFormatter(self, fmt: logging.Formatter | None) -> None:  # noqa: N802  # overrides a method of logging
        super().setFormatter(fmt)
        self.everything.setFormatter(fmt)

    def emit(self, record: logging.LogRecord) -> None:
        if self.is_calm and NO_METADATA in str(record.msg):
            return
        self.pages += getattr(record, "pages", ())  # from neurotier.run.snakemake_internals.announce_pages
        self.has_begun = self.has_begun or hasattr(record, "event") or record.levelno >= logging.WARNING
        if not self.is_calm and not wrong_config(str(record.msg)):
            self.everything.emit(record)
        elif not self.has_begun:
            self.early.append(record)
        elif line := self.line(record):
            try:
                print(line, file=sys.stderr, flush=True)
            except OSError:  # the terminal is gone
                self.handleError(record)

    def line(self, record: Any) -> str:
        """The line to print for a record; empty if none."""
        event, text = getattr(record, "event", None), str(record.msg or "")
        if event == LogEvent.JOB_INFO:
            return self.now_and_then(record.rule_name, record.rule_msg or "")
        if event == LogEvent.PROGRESS:
            return self.now_and_then("", f"{record.done} of {record.total} steps done")
        if event == LogEvent.JOB_ERROR:
            return "" if is_stopped() else f"rule {record.rule_name} failed; its log: {', '.join(record.log) or 'none'}"
        if text.startswith("Trying to restart job"):  # the line before names the job
            return "It is tried again"
        if text.startswith("Nothing to be done"):
            return "; ".join([text.rstrip("."), *(str(page) for page in self.pages if page.exists())])
        if line := wrong_config(text):
            return line
        if text.startswith(NOT_SUBMITTED):
            why = text.removeprefix(NOT_SUBMITTED).partition("\n")[0]
            return self.now_and_then(why, f"neurotier: Slurm is given no job of rule {why}")
        if record.levelno < logging.WARNING or any(words in text for words in SAID_OTHERWISE):
            return ""
        said = str(self.format(record)).strip()
        for words, line in OF_THE_MACHINE.items():
            if words in said:
                return self.now_and_then(words, f"neurotier: {line}, and start the same command again")
        if found := NOT_MADE.search(said):
            return f"neurotier: --report: {found[1]} is not there yet; start the same command without --report first"
        if found := NO_ROOM.search(said):
            fix = "make room or allow access there, or mount it again (XDG_CACHE_HOME moves .cache)"
            return f"neurotier: {found[2] or OWN_PLACES}: {found[1]}; {fix}, and start the same command again"
        return said

    def now_and_then(self, subject: str, line: str) -> str:
        """The line, or an empty one if a line on the same subject was printed less than :data:`SAY_S` ago."""
        now_s = time.monotonic()
        if now_s - self.said_s.get(subject, 0.0) < SAY_S:
            return ""
        self.said_s[subject] = now_s
        return line

    def close(self) -> None:
        """Print the messages of a command that ran no jobs."""
        while self.early and not self.has_begun:  # Snakemake closes the handler twice
            self.everything.emit(self.early.pop(0))
        super().close()


def wrong_config(text: str) -> str:
    """A line that replaces a trace about ``--config`` or ``--configfile``; empty for any other text."""
    if BAD_CONFIG in text:
        return f"neurotier: --config: {text.rpartition(BAD_CONFIG)[2].strip()} {HOW_CONFIG}"
    if NO_CONFIG in text and "in load_configfile" in text:
        what = text.rpartition(NO_CONFIG)[2].strip()
        return f"neurotier: --configfile: {what}; correct the path, or write targets first"
    return ""


def say_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an uncaught exception: for Ctrl-C while Snakemake reads its own files with one line, for any other with
    the trace."""
    if issubclass(kind, KeyboardInterrupt):
        print("neurotier: stopped; start the same command again to go on", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def is_stopped() -> bool:
    """Whether a user or a scheduler has stopped the run, whose jobs then fail."""
    from neurotier.run.stops import main_stop

    return main_stop.came is not None
