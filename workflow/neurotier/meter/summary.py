"""What ``neurotier meter`` prints: one screen for people."""

from __future__ import annotations

from neurotier.core.quantities import size
from neurotier.meter.usage import LABELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from neurotier.meter.usage import Usage

MADE = {
    "exact": "exact: one thread active at a time; asleep: network, locks, timers",
    "scaled": "several threads at once; their seconds are scaled to the wall time in which any was active",
    "sampled": "sampled; asleep: network, locks, timers",
}
NOTHING = "n/a"


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
    published = f"I/O as published, wall - CPU, {seconds(usage.wall_s - usage.cpu_s)}"
    lines = [
        "-" * width,
        head,
        f"{cpu}; {published}",
        "",
        *account_lines(usage, width),
        "",
        *(f"{name:<12}{text}" for name, text in details(report, usage)),
        "-" * width,
    ]
    return "\n".join(lines)


def account_lines(usage: Usage, width: int) -> list[str]:
    """The account as a bar chart, one cause per line."""
    if usage.account is None and usage.left_behind:
        return ["The wall time is not divided by cause: seconds of processes that outlived the command lie outside it"]
    if usage.account is None:
        return ["Where the wall time went is not known: this kernel accounts no waits, or its records were lost"]
    label, figures = max(map(len, LABELS.values())) + 2, 22
    room = max(10, width - label - figures)
    lines = []
    for name, cause in LABELS.items():
        value = getattr(usage, name)
        share = value / usage.wall_s if value is not None and usage.wall_s else 0.0
        bar = "█" * round(room * min(1.0, max(0.0, share)))
        text = NOTHING if value is None else f"{seconds(value):>11} {percent(value, usage.wall_s):>8}"
        lines.append(f"{cause:<{label}}{bar:<{room}}{text:>{figures}}")
    made = MADE[usage.account]
    if usage.account == "sampled" and usage.seen_share is not None:
        made += f"; threads with {100 * usage.seen_share:.0f} % of the CPU time were seen"
    return [*lines, f"({made})"]


def details(report: dict[str, Any], usage: Usage) -> list[tuple[str, str]]:
    """The other figures, by subject, each with its source."""
    found = []
    if usage.run_queue_s is not None:
        waits = {"core": usage.run_queue_s, "storage": usage.block_io_s, "memory": usage.memory_stall_s}
        told = ", ".join(f"{name} {seconds(value)}" for name, value in waits.items())
        found.append(("waits", f"{told} in thread-seconds [{usage.wait_source}]"))
    if usage.processes is not None and usage.threads is not None:
        lived = f"lived {seconds(usage.thread_s)} in all"
        found.append(
            ("tree", f"{counted(usage.processes, 'process')}, {counted(usage.threads, 'thread')}, {lived} [taskstats]")
        )
    if usage.left_behind:
        found.append(("left behind", f"{counted(usage.left_behind, 'process')} outlived the command"))
    found.append(("memory", f"{size(usage.max_rss_bytes)} in the largest process [{usage.memory_source}]"))
    if usage.bytes_source:
        read = f"read {size(usage.logical_read_bytes)} ({size(usage.device_read_bytes)} from devices)"
        written = f"wrote {size(usage.logical_written_bytes)} ({size(usage.device_written_bytes)} to devices)"
        found.append(("bytes", f"{read}, {written} [{usage.bytes_source}]"))
    switches = f"{usage.voluntary_switches:,} to wait, {usage.involuntary_switches:,} made to"
    faults = f"{counted(usage.major_faults, 'page fault')} with I/O"
    found.append(("switches", f"{switches}; {faults} [{usage.cpu_source}]"))
    if usage.pressure_source:
        stalls = {"core": usage.pressure_cpu_s, "I/O": usage.pressure_io_s, "memory": usage.pressure_memory_s}
        told = ", ".join(f"{name} {seconds(value)}" for name, value in stalls.items())
        found.append(("pressure", f"{told} with some thread stalled [{usage.pressure_source}]"))
    if usage.input_bytes is not None:
        before, after = share(usage.input_resident_before), share(usage.input_resident_after)
        found.append(("page cache", f"{before} of {size(usage.input_bytes)} input before, {after} after [mincore]"))
    found += [(f"tier {flow['tier']}", told_flow(flow)) for flow in report["tiers"]]
    return found


def told_flow(flow: dict[str, Any]) -> str:
    """What moved on a tier, in words."""
    parts = []
    for verb, column in (("read", "read"), ("wrote", "written")):
        if flow[f"{column}_bytes"] is not None:
            files = flow[f"{column}_files"]
            parts.append(f"{verb} {size(flow[f'{column}_bytes'])}" + (f" in {counted(files, 'file')}" if files else ""))
    return f"{', '.join(parts)} [{flow['traffic_source']}]"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "process"), counted(5001, "process"), counted(2, "file")
    ('1 process', '5,001 processes', '2 files')
    """
    plural = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{plural}"


def seconds(value: float | None) -> str:
    """A time to the millisecond.

    >>> seconds(12.0584), seconds(None)
    ('12.058 s', 'n/a')
    """
    return NOTHING if value is None else f"{value:,.3f} s"


def percent(part: float, whole: float) -> str:
    """A share in per cent, with one decimal.

    >>> percent(1, 3), percent(1, 0)
    ('33.3 %', 'n/a')
    """
    return f"{100 * part / whole:.1f} %" if whole else NOTHING


def share(value: float | None) -> str:
    """A share of 1 in whole per cent."""
    return NOTHING if value is None else f"{100 * value:.0f} %"
