"""Run IOR itself with ``mpirun`` on this node: build its command line, read its JSON, report its errors in one line.

The options are those of IO-500's ior-easy. Writing and reading are separate runs, and the files are evicted from the
page cache in between: within one node, IOR's own way around the cache (``-C``) may give a process the file that it
wrote. IOR's bandwidth is all bytes over the time from the first start to the last end, including opening and closing;
it does not report that of each process.

Source: IOR's user documentation and release notes (hpc/ior, ``doc/sphinx/userDoc/options.rst``, ``NEWS``). IOR has
``--posix.odirect``, and thereby all options used here, since 3.3.0.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from neurotier.core.errors import ToolError, one_line
from neurotier.core.foreign import blaming, read_text
from neurotier.core.tables import Row
from neurotier.storage.calls import enter_own_network, failure_reason, require_own_network, require_program, run_call
from neurotier.storage.fio import MIB, require_fio
from neurotier.storage.ior.points import FILES, IOR, Point
from neurotier.storage.page_cache import evict

LAUNCHER = "mpirun"

SUMMARY = "summary.json"
"""File to which IOR writes its JSON; a name, since the JSON would repeat a path without escaping it."""

ROUNDED_BYTES = 128
"""Tolerance for the bytes moved: IOR reports sizes with 4 decimals of a MiB."""

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
"""By default, Open MPI 4 and 5 refuse to run as root, even in a container, or with more processes than cores. MPICH
ignores these variables."""


def require_engine(engine: str, where: str) -> None:
    """Raise :class:`ToolError` if a program that an engine needs is missing; ``where`` says what needs the engine."""
    if engine != IOR:
        require_fio(where)
        return
    for program, fix in (
        (IOR, "have IOR 3.3 or later on PATH (github.com/hpc/ior), or take ior.engine: fio"),
        (LAUNCHER, "have that of the MPI that IOR was built with on PATH, or take ior.engine: fio"),
    ):
        require_program(program, where, fix)
    require_own_network(LAUNCHER, where, "ior.engine: fio")


def ior_command(point: Point, pattern: str, direct: bool) -> list[str]:
    """The command line that writes or reads the files, to be run in their folder.

    >>> " ".join(ior_command(Point("none", 2, 8388608, 65536, False, 1), "read", True))
    'mpirun -n 2 ior -a POSIX -F -C -g -k -r -b 8388608 -t 65536 -o ior -O summaryFormat=JSON \
-O summaryFile=summary.json --posix.odirect'
    """
    words = f"{LAUNCHER} -n {point.processes} {IOR} -a POSIX -F -C -g -k {'-w -e' if pattern == 'write' else '-r'}"
    words += f" -b {point.file_bytes} -t {point.block_bytes} -o {FILES} -O summaryFormat=JSON -O summaryFile={SUMMARY}"
    return [*words.split(), *["--posix.odirect"] * direct]


def run_ior(point: Point, pattern: str, direct: bool, folder: Path, timeout_s: float) -> Row:
    """Write or read the files of a point in ``folder``, which stay there.

    Parameters
    ----------
    point
        The point.
    pattern
        ``write`` or ``read``.
    direct
        Whether to bypass the page cache (``O_DIRECT``).
    folder
        A folder that belongs to the caller.
    timeout_s
        End IOR after this time, s.

    Raises
    ------
    ToolError
        If IOR fails, with the reason that it gives, does not end, or writes no readable summary.
    """
    where = f"{pattern} (ior, {point.processes} processes) in {folder}"
    (folder / SUMMARY).unlink(missing_ok=True)
    if pattern == "read":
        evict(list(folder.glob(f"{FILES}.*")))
    command = ior_command(point, pattern, direct)
    done = run_call(command, folder, timeout_s, where, environment=ENVIRONMENT, before=enter_own_network)
    if done.returncode != 0:
        raise ToolError(f"ior: {reason(done.stdout, done.stderr, done.returncode)}", where)
    if not (folder / SUMMARY).exists():
        raise ToolError(f"ior: {reason(done.stdout, done.stderr, 0)}, and no summary", where, "take IOR 3.3 or later")
    with blaming(f"{SUMMARY} of ior", ToolError):
        return read_summary(read_text(folder, SUMMARY), point, pattern, where)


def read_summary(text: str, point: Point, pattern: str, where: str) -> Row:
    """Read the figures from IOR's JSON, as cells of the table.

    Raises
    ------
    ToolError
        If the JSON is not valid or lacks figures, or if not all bytes were moved.
    """
    try:
        report: Row = json.loads(text)
        (found,) = (one for one in report["summary"] if one["operation"] == pattern)
        moved, span_s, bandwidth = (float(found[key]) for key in ("xsizeMiB", "MeanTime", "bwMeanMIB"))
        processes, version = int(found["numTasks"]), str(report["Version"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else "is not IOR's JSON"
        raise ToolError(f"the summary of ior {what}", where, "take IOR 3.3 or later") from None
    if not all(map(math.isfinite, (moved, span_s, bandwidth))) or bandwidth <= 0 or span_s < 0:
        raise ToolError(f"ior says that it took {span_s} s at {bandwidth} MiB/s", where)
    if processes != point.processes:
        what = f"ior ran with {processes} of {point.processes} processes"
        raise ToolError(what, where, "have the mpirun of the MPI that IOR was built with on PATH")
    if abs(moved * MIB - point.written_bytes) > ROUNDED_BYTES:
        raise ToolError(f"ior moved {moved * MIB:.0f} of {point.written_bytes} bytes", where)
    measured = {"bytes": point.written_bytes, "span_s": span_s, "bytes_per_s": bandwidth * MIB}
    return {f"{pattern}_{name}": value for name, value in measured.items()} | {"ior_version": version}


def reason(output: str, errors: str, exit_code: int) -> str:
    """Why IOR failed, in its own words or those of ``mpirun``.

    >>> reason("ERROR: write(7, 0x7f, 4096) failed, errno 28, No space left on device (aiori-POSIX.c:594)", "", 255)
    'write(7, 0x7f, 4096) failed, errno 28, No space left on device (aiori-POSIX.c:594)'
    >>> reason("", "-----\\nprterun noticed that process rank 3 exited on\\nsignal 9 (Killed).\\n-----\\n", 137)
    'prterun noticed that process rank 3 exited on signal 9 (Killed).'
    """
    lines = [line.strip(" \t=") for line in f"{output}\n{errors}".splitlines()]
    for line in lines:
        _, found, why = line.partition("ERROR: ")
        if found:
            return one_line(why)
    paragraph: list[str] = []
    for line in lines:  # mpirun gives reasons in several lines, between lines of dashes
        if any(map(str.isalpha, line)):
            paragraph.append(line)
        elif paragraph:
            break
    return failure_reason(" ".join(paragraph), exit_code)
