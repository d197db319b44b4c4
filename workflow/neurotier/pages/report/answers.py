"""Answers: where the time of a run or of a participant went, in short sentences that claim no more than the data show.

What a faster tier saves at most
--------------------------------
In phases that move data between tiers (``stage_in``, ``container_start``, ``stage_out``), a faster tier saves at most
the wall time minus user CPU time and minus waiting for a core. System time can be saved: on tmpfs and DAX, the kernel
does the copying.

In the other phases (``start_up``, ``compute``), it saves at most the time waiting for storage and the time that the
account does not explain; if the work tier is a network file system, also the time asleep, since some waits for the
server are counted as sleep. If several threads are active at once, waiting for storage counts in thread-seconds,
whatever part of the wall time the account assigns to it: other threads may later wait for the thread that waits. System
time is not counted: most of it is not copying, and the parts of copying and of a file system's calls cannot be told
apart from the rest; the amount of it is stated if it is notable. Stalls for memory are not counted either.

A phase without an account counts with its wall time: its CPU time may be that of several processes, or of those that
outlived it, while the phase itself waited for storage. Shares refer to the summed wall times of participant jobs, not
to the makespan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from neurotier.core.kinds import KINDS
from neurotier.core.parallelism import MOVING_PHASES
from neurotier.core.quantities import percent
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.causes import (
    BLOCK_IO,
    COMPUTE_BOUND_SHARE,
    CPU,
    MEMORY_STALL,
    NOTABLE_SHARE,
    OTHER,
    RUN_QUEUE,
    UNEXPLAINED,
    about,
    share_of_wall,
    sum_causes,
    why_no_account,
)
from neurotier.pages.report.data import ReportData, accounted, phases_of

IN_MEMORY = {name for name, kind in KINDS.items() if kind.in_memory}
REMOTE = {name for name, kind in KINDS.items() if kind.remote}
"""Kinds of tiers whose files are in memory, and kinds that are reached over a network."""

MOST_SHARE = 0.5
"""A phase has most of a cause if it has more than this share."""


def run_answers(data: ReportData) -> list[str]:
    """Sentences about all participant jobs taken together, without full stops.

    Nothing that depends on the kind of a tier is said about a tier that is not in the settings.
    """
    rows = data["profile"]
    if sum(row["wall_s"] for row in rows) <= 0:
        return ["No time was measured"]
    known = phases_of(accounted(data.jobs))
    timed = time_answers(data, known) if sum(row["wall_s"] for row in known) > 0 else cpu_alone(rows)
    return timed + cache_answers(data)


def cpu_alone(rows: Sequence[Row]) -> list[str]:
    """The CPU time of rows without an account, and why no more is known, in sentences."""
    share = percent(sum(row["cpu_s"] for row in rows) / sum(row["wall_s"] for row in rows))
    return [
        f"CPU time is {share} of wall time",
        f"How much of the rest was waiting is not known: {why_no_account(rows)}",
    ]


def saved_at_most_s(row: Row, kinds: Mapping[str, str]) -> float:
    """The most that a faster tier could save of one phase, s, as the module's docstring defines it.

    >>> from collections import defaultdict
    >>> row = defaultdict(float, phase="compute", account="exact", work_tier="nfs", account_block_io_s=2.0)
    >>> row |= {"account_other_s": 3.0, "wall_s": 9.0}
    >>> saved_at_most_s(row, {"nfs": "network"}), saved_at_most_s(row, {"nfs": "block"})
    (5.0, 2.0)
    >>> saved_at_most_s(row | {"account": "scaled", "block_io_s": 4.0}, {})
    4.0
    >>> saved_at_most_s(row | {"account": "scaled", "block_io_s": 8.0}, {"nfs": "network"})
    9.0
    """
    if row["account"] is None:
        return float(row["wall_s"])
    if row["phase"] in MOVING_PHASES:
        return max(0.0, float(row["wall_s"] - row["account_user_s"] - row["account_run_queue_s"]))
    asleep_s = row[OTHER] if kinds.get(row["work_tier"]) in REMOTE else 0.0
    waited_s = max(row[BLOCK_IO] or 0.0, row["block_io_s"] or 0.0)
    return float(min(row["wall_s"], waited_s + (asleep_s or 0.0) + max(0.0, row[UNEXPLAINED])))


def time_answers(data: ReportData, rows: Sequence[Row]) -> list[str]:
    """Sentences on what a faster tier saves at most, and on notable waits, from rows with an account."""
    saved_s = sum(saved_at_most_s(row, data.tier_kinds) for row in rows)
    causes, computing = sum_causes(rows), sum_causes(row for row in rows if row["phase"] not in MOVING_PHASES)
    computing_share = sum(computing[cause] for cause in CPU) / causes["wall_s"]
    bound = f"a faster tier saves at most {about(rows)}{percent(min(1.0, saved_s / causes['wall_s']))}"
    more = {
        BLOCK_IO: where(data, rows, BLOCK_IO),
        RUN_QUEUE: "; more processes ran here than there are cores",
        MEMORY_STALL: "; start fewer participants at once",
        OTHER: f"{where(data, rows, OTHER)}; network, locks or timers",
        UNEXPLAINED: "",
    }
    if any(row["account"] and row[BLOCK_IO] is None and row[OTHER] is None for row in rows):
        more[UNEXPLAINED] = f"; part of it may be waiting for storage: {why_no_account(rows)}"
    in_kernel = computing[CPU[1]] / causes["wall_s"]
    part = f"{about(rows) or 'the '}{percent(in_kernel)} that computing spent in the kernel"
    return [
        f"Compute-bound: {bound}" if computing_share >= COMPUTE_BOUND_SHARE else bound.capitalize(),
        *([f"Besides, it may save part of {part}"] if in_kernel >= NOTABLE_SHARE else ()),
        *(
            f"{LABELS[cause].capitalize()}: {about(rows)}{percent(share)} of wall time{text}"
            for cause, text in more.items()
            if (share := share_of_wall(causes, cause)) >= NOTABLE_SHARE
        ),
    ]


def cache_answers(data: ReportData) -> list[str]:
    """Sentences on how much of the inputs and the container image was in the page cache, for tiers that use it."""
    said = []
    for phase, what in (("stage_in", "input data"), ("container_start", "container image")):
        known = [
            row
            for row in data["profile"]
            if row["phase"] == phase and row["input_bytes"] and row["input_resident_before"] is not None
        ]
        tiers = {flow["tier"] for flow in data["traffic"] if flow["phase"] == phase and flow["read_bytes"] is not None}
        if known and len(tiers) == 1 and data.tier_kinds.get(tier := tiers.pop()) in KINDS.keys() - IN_MEMORY:
            cached = sum(row["input_bytes"] * row["input_resident_before"] for row in known)
            share = percent(cached / sum(row["input_bytes"] for row in known))
            said.append(f"{share} of the {what} was in the page cache; a cold start reads all of it from tier {tier}")
    return said


def where(data: ReportData, rows: Sequence[Row], cause: str) -> str:
    """The phase that has most of a cause, and its tiers as far as known; empty if no phase has most of it.

    Waiting for storage is never attributed to a tier in memory, and sleep only to network tiers.
    """
    spent_s = Counter[str]()
    for row in rows:
        spent_s[row["phase"]] += row[cause] or 0
    phase, most_s = spent_s.most_common(1)[0]
    if len(spent_s) < 2 or most_s <= MOST_SHARE * spent_s.total():
        return ""
    tiers, kinds = {flow["tier"] for flow in data["traffic"] if flow["phase"] == phase}, data.tier_kinds
    if phase not in MOVING_PHASES:
        tiers |= {row["work_tier"] for row in rows if row["phase"] == phase}
    waited = {
        tier for tier in tiers if kinds.get(tier) in REMOTE or (cause == BLOCK_IO and kinds.get(tier) not in IN_MEMORY)
    }
    return f", most of it in {phase}" + (f" on tier {' or '.join(sorted(waited))}" if waited else "")
