"""What ``neurotier meter`` prints: one screen for people."""

from __future__ import annotations

from neurotier.core.quantities import MISSING, counted, size
from neurotier.meter.usage import LABELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from neurotier.meter.usage import Usage

HOW = {
    "exact": "exact: one thread active at a time; asleep: network, locks, timers",
    "scaled": "several threads at once: their seconds divide the time in which some was active for certain",
    "sampled": "sampled; asleep: network, locks, timers",
}
CALLS = {"io_uring": "io_uring", "aio": "AIO"}
"""Asynchronous calls under their usual names."""


def summary(report: dict[str, Any], usage: Usage, width: int) -> str:
    """The summary of one metered command.

    Parameters
    ----------
    report
        The record, as written by ``--record``.
    usage
        The same figures.
    width
        Columns of the terminal.
    """
    head = f"{report['phase']}: exit code {report['exit_code']}, wall {seconds(usage.wall_s)}"
    cpu = f"CPU {seconds(usage.cpu_s)} ({percent(usage.cpu_s, usage.wall_s)} of wall)"
    lines = [
        "-" * width,
        head,
        cpu,
        "",
        *account_lines(usage, width),
        "",
        *(f"{name:<12}{text}" for name, text in details(report, usage)),
        "-" * width,
    ]
    return "\n".join(lines)


def account_lines(usage: Usage, width: int) -> list[str]:
    """The account as a bar chart with a line per cause."""
    if usage.account is None and usage.left_behind:
        return [
            "The wall time is not divided by cause: processes outlived the command, and their seconds lie outside it"
        ]
    if usage.account is None:
        why = usage.account_reason or "this kernel does not account for waits, or the phase was too short to be sampled"
        return [f"Where the wall time went is not known: {why}"]
    label, figures = max(map(len, LABELS.values())) + 2, 22
    room = max(10, width - label - figures)
    lines = []
    for name, cause in LABELS.items():
        value = getattr(usage, name)
        share = value / usage.wall_s if value is not None and usage.wall_s else 0.0
        bar = "█" * round(room * min(1.0, max(0.0, share)))
        text = MISSING if value is None else f"{seconds(value):>11} {percent(value, usage.wall_s):>8}"
        lines.append(f"{cause:<{label}}{bar:<{room}}{text:>{figures}}")
    return [*lines, *(f"({note})" for note in account_notes(usage, HOW[usage.account]))]


def account_notes(usage: Usage, how: str) -> list[str]:
    """How the account was made, and why it is not exact."""
    if usage.account == "sampled" and usage.seen_share is not None:
        how += f"; threads with {100 * usage.seen_share:.0f} % of the CPU time were seen"
    notes = [how]
    if usage.account_reason:
        notes.append(f"not exact: {usage.account_reason}")
    if usage.bytes_reason:
        notes.append(f"waits for {CALLS[usage.bytes_reason]} may count as asleep")
    return notes


def details(report: dict[str, Any], usage: Usage) -> list[tuple[str, str]]:
    """The other figures, by subject, each with its source."""
    lines = []
    if usage.run_queue_s is not None:
        waits = {"core": usage.run_queue_s, "storage": usage.block_io_s, "memory": usage.memory_stall_s}
        listed = ", ".join(f"{name} {seconds(value)}" for name, value in waits.items())
        lines.append(("waits", f"{listed} in thread-seconds [{usage.wait_source}]"))
    if usage.processes is not None and usage.threads is not None:
        lived = f"lived {seconds(usage.thread_s)} in all"
        lines.append(
            ("tree", f"{counted(usage.processes, 'process')}, {counted(usage.threads, 'thread')}, {lived} [taskstats]")
        )
    if usage.left_behind:
        lines.append(("left behind", f"{counted(usage.left_behind, 'process')} outlived the command"))
    lines.append(("memory", f"{size(usage.max_rss_bytes)} in the largest process [{usage.memory_source}]"))
    if usage.bytes_source:
        read = f"read {size(usage.logical_read_bytes)} ({size(usage.device_read_bytes)} from devices)"
        written = f"wrote {size(usage.logical_written_bytes)} ({size(usage.device_written_bytes)} to devices)"
        lines.append(("bytes", f"{read}, {written} [{usage.bytes_source}]"))
        if usage.bytes_reason:
            lines.append(("", f"n/a: the kernel counts what {CALLS[usage.bytes_reason]} moves at devices only"))
    switches = f"{usage.voluntary_switches:,} to wait, {usage.involuntary_switches:,} made to"
    faults = f"{counted(usage.major_faults, 'page fault')} with I/O"
    lines.append(("switches", f"{switches}; {faults} [{usage.cpu_source}]"))
    if usage.pressure_source:
        stalls = {"core": usage.pressure_cpu_s, "I/O": usage.pressure_io_s, "memory": usage.pressure_memory_s}
        listed = ", ".join(f"{name} {seconds(value)}" for name, value in stalls.items())
        lines.append(("pressure", f"{listed} with some thread stalled [{usage.pressure_source}]"))
    if usage.input_bytes is not None:
        before, after = (
            MISSING if share is None else f"{100 * share:.0f} %"
            for share in (usage.input_resident_before, usage.input_resident_after)
        )
        lines.append(("page cache", f"{before} of {size(usage.input_bytes)} input before, {after} after [mincore]"))
    for flow in report["tiers"]:
        lines.append((f"tier {flow['tier']}", flow_text(flow)))
        if flow["made_files"]:
            lines.append(("", files_text(flow)))
    return lines


def flow_text(flow: dict[str, Any]) -> str:
    """Bytes and files that were read and written on a tier, in words."""
    parts = []
    for verb, column in (("read", "read"), ("wrote", "written")):
        if flow[f"{column}_bytes"] is not None:
            files = flow[f"{column}_files"]
            parts.append(f"{verb} {size(flow[f'{column}_bytes'])}" + (f" in {counted(files, 'file')}" if files else ""))
    return f"{', '.join(parts)} [{flow['traffic_source']}]"


def files_text(flow: dict[str, Any]) -> str:
    """Files of a folder that was watched, in words.

    >>> held = {"made_files": 3, "removed_files": None, "left_files": 3, "peak_files": 5, "peak_bytes": 2048}
    >>> files_text({**held, "file_walks": 0})
    'made 3 files, removed n/a, left 3; 5 files with 2 KiB at once [start and end]'
    """
    removed = MISSING if flow["removed_files"] is None else f"{flow['removed_files']:,}"
    source = f"{counted(flow['file_walks'], 'walk')} in between" if flow["file_walks"] else "start and end"
    made = f"made {counted(flow['made_files'], 'file')}, removed {removed}, left {flow['left_files']:,}"
    return f"{made}; {counted(flow['peak_files'], 'file')} with {size(flow['peak_bytes'])} at once [{source}]"


def seconds(value: float | None) -> str:
    """A time to the millisecond.

    >>> seconds(12.0584), seconds(None)
    ('12.058 s', 'n/a')
    """
    return MISSING if value is None else f"{value:z,.3f} s"


def percent(part: float, whole: float) -> str:
    """A share in per cent, with one decimal.

    >>> percent(1, 3), percent(1, 0)
    ('33.3 %', 'n/a')
    """
    return f"{100 * part / whole:z.1f} %" if whole else MISSING
