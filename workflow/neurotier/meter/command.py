"""``neurotier meter``: measure any command; prints a summary for people, and writes JSON Lines for programs.

The command gets the meter's standard streams, environment, working folder and open files unchanged. Signals to the
meter are passed on, and the meter ends like the command, with the same exit code or by the same signal. Processes that
the command leaves running may run for the grace time and are then ended.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from neurotier.core.errors import InputError, NeurotierError, SettingsError, TierError
from neurotier.meter.measure import measure_command
from neurotier.meter.tree import shell_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from neurotier.meter.traffic import TierWatch
    from neurotier.meter.usage import Usage

HELP = """\
usage: neurotier meter [option ...] [--] COMMAND [ARGUMENT ...]

Measure a command and its whole process tree.

options:
  -h, --help                   show this help message and exit
  --record FILE                append one JSON line with every figure to this file
  --phase NAME                 name of the record (default: the command's name)
  -t, --tier NAME[=FOLDER]     report bytes and files of this storage tier; without FOLDER, a tier of
                               config/config.yaml (repeatable)
  -i, --input FILE             report how much of this file is in the page cache before and after (repeatable)
  -g, --grace SECONDS          how long processes may run on after the command has ended, or after a signal to
                               stop (default: 5)
  -q, --quiet                  print no summary

The summary goes to standard error. Where that is not a terminal (in a batch job, in a pipe, in a log) and there is a
--record, no summary is printed: the figures are in the record.
As root the waits are exact, from the kernel's exit records; otherwise they are sampled. Waits for storage are always
sampled until root has run: sysctl kernel.task_delayacct=1"""

LONG = {"-t": "--tier", "-i": "--input", "-g": "--grace", "-q": "--quiet", "-h": "--help"}
WITH_VALUE = ("--record", "--phase", "--tier", "--input", "--grace")
"""Options with a value."""


def main(arguments: list[str]) -> int:
    """``neurotier meter`` with these arguments; returns the exit code of the process."""
    try:
        options = Options(arguments)
        if options.help:
            print(HELP)
            return 0
        return run(options)
    except NeurotierError as error:
        print(f"neurotier: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:  # before or after the command
        return 130


class Options:
    """The command line's options, with the names used in the help. ``argparse`` would take a third of the meter's time.

    Raises
    ------
    SettingsError
        If there is no such option, or it has no value or a wrong one.

    >>> options = Options(["-q", "--record=x", "-t", "fast=/dev/shm", "--", "true", "-q"])
    >>> options.quiet, options.record, options.tier, options.command
    (True, 'x', ['fast=/dev/shm'], ['true', '-q'])
    """

    def __init__(self, arguments: list[str]) -> None:
        self.record: str | None = None
        self.phase: str | None = None
        self.tier: list[str] = []
        self.input: list[str] = []
        self.grace = "5"
        self.quiet = self.help = False
        self.command = list(arguments)
        while self.command and self.command[0].startswith("-"):
            option, given, value = self.command.pop(0).partition("=")
            if option == "--":
                break
            option = LONG.get(option, option)
            if option in ("--quiet", "--help"):
                setattr(self, option[2:], True)
                continue
            if option not in WITH_VALUE or not (given or self.command):
                what = "needs a value" if option in WITH_VALUE else "is not an option"
                raise SettingsError(what, option, "see neurotier meter --help")
            name, word = option[2:], value if given else self.command.pop(0)
            known = getattr(self, name)
            setattr(self, name, [*known, word] if isinstance(known, list) else word)
        try:
            self.grace_s = float(self.grace)
        except ValueError:
            raise SettingsError(f"{self.grace!r} is not a time in seconds", "--grace") from None


def run(options: Options) -> int:
    """Measure the command; returns the exit code of this process, which dies by the same signal as the command.

    Raises
    ------
    NeurotierError
        Before the command is started, if an option is wrong.
    """
    command = options.command
    if not command or not command[0]:
        raise SettingsError("there is no command", "meter", "write it after --")
    record = open_record(options.record) if options.record else None
    watches = [watch(word) for word in options.tier]
    resident_before = residency(options.input)

    usage, exit_code = measure_command(
        command, grace_s=options.grace_s, forward=True, watches=[tier.watch for tier in watches]
    )

    if options.input:
        usage.input_bytes, usage.input_resident_before = resident_before
        _, usage.input_resident_after = residency(options.input, gone_is_empty=True)
    report = {
        "phase": options.phase or os.path.basename(command[0]),
        "command": command,
        "host": os.uname().nodename,
        "exit_code": shell_code(exit_code),
        "tiers": [flow for tier in watches for flow in tier.flows()],
        **usage.record(),
    }
    if record is not None:
        append(record, options.record, report)
    if not options.quiet and sys.stderr and (record is None or sys.stderr.isatty()):
        print_summary(report, usage)
    if exit_code < 0:
        die_by(-exit_code)
    return shell_code(exit_code)  # even after a signal: process 1 of a namespace ignores signals from itself


def open_record(path: str) -> int:
    """Open the record before the command starts, so that a wrong path is reported before hours of computing."""
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise SettingsError(f"cannot be written: {error.strerror}", f"--record {path}") from None


def append(record: int, path: object, report: dict[str, Any]) -> None:
    """Append one line in a single write, so that meters that share a file do not mix their lines.

    A file system without room for the whole line may take a part of it; the second write then raises the error. That
    part is cut off again: the next line would be appended to it, and be lost.
    """
    import json  # imported here, since at the top it would delay the command

    left = line = (json.dumps(report) + "\n").encode()
    try:
        while left:
            left = left[os.write(record, left) :]
    except OSError as error:  # the command's exit code matters more than this error
        print(f"neurotier: --record {path}: cannot be written: {error.strerror}", file=sys.stderr)
        with suppress(OSError):  # it may not be a file
            os.ftruncate(record, os.fstat(record).st_size - len(line) + len(left))


def watch(word: str) -> TierWatch:
    """Start a watch of a tier, given as ``NAME=FOLDER`` or by its name in the configuration."""
    from neurotier.meter.traffic import TierWatch

    name, given, folder = word.partition("=")
    if not given:
        folder = configured(name)
    if not os.path.isdir(folder):
        raise TierError(f"tier {name!r}: {folder or 'its folder'} is not an existing folder", fix="--tier NAME=FOLDER")
    return TierWatch(name, folder)


def configured(name: str) -> str:
    """The path of a tier of ``config/config.yaml`` in the working folder."""
    import yaml  # needed only for a tier given by its name

    from neurotier.core.configuration import expand

    try:
        with open("config/config.yaml") as file:
            path = yaml.safe_load(file)["tiers"][name]["path"]
    except (yaml.YAMLError, ValueError):
        raise SettingsError("is not valid YAML", "config/config.yaml", "mend it, or write NAME=FOLDER") from None
    except (OSError, LookupError, TypeError):
        what = f"config/config.yaml here has no tier {name!r} with a path"
        raise TierError(what, "--tier", "write NAME=FOLDER") from None
    return expand(str(path), f"config key tiers.{name}.path")


def residency(paths: list[str], gone_is_empty: bool = False) -> tuple[int, float | None]:
    """Size of the inputs in bytes, and the share of them that is in the page cache."""
    if not paths:
        return 0, None
    from neurotier.meter.residency import resident_share

    for path in paths:
        if not os.path.isfile(path):
            if gone_is_empty:
                return 0, None
            raise InputError("is not an existing file", f"--input {path}")
    return sum(map(os.path.getsize, paths)), resident_share(paths)


def print_summary(report: dict[str, Any], usage: Usage) -> None:
    """Print the summary on standard error."""
    from neurotier.meter.summary import summary

    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        width = 80
    text = summary(report, usage, min(width, 100))
    with suppress(OSError):  # the terminal is gone: the command's exit code matters more
        os.write(2, f"{text}\n".encode(sys.stderr.encoding, "replace"))


def die_by(number: int) -> None:
    """End this process by the signal that ended the command, without a core dump."""
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # nobody can handle SIGKILL
        signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
