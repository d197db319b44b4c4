"""Answers: where the time of a run, or of one participant, went, in short sentences that claim no more than the data.

What a faster tier saves at most
--------------------------------
Of the phases that move data between tiers (``stage_in``, ``container_start``, ``stage_out``) a faster tier saves at
most the wall time less user CPU time and less waiting for a core. Their system time can be saved: on tmpfs and DAX
the kernel does the copying.

Of the others (``start_up``, ``compute``) it saves at most the time waiting for storage and what the account does not
explain; besides, where the work tier is a network file system, the time asleep, for there some waits for the server
are booked as sleep. System time is not counted: most of it is not copying, and what is (from and to page cache,
tmpfs, DAX) cannot be told apart. Being short of memory is not counted either.

A phase without an account counts with its wall time less user time (moving) or CPU time (computing), and less its
threads' waiting for a core where that is known. The shares are of the summed wall times of participant jobs, not of the
makespan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from neurotier.core.parallelism import MOVING_PHASES
from neurotier.core.quantities import percent, seconds, size
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.causes import (
    BLOCK_IO,
    COMPUTE_BOUND_SHARE,
    MEMORY_STALL,
    NOTABLE_SHARE,
    OTHER,
    RUN_QUEUE,
    UNEXPLAINED,
    Causes,
    sum_causes,
    why_no_account,
)
from neurotier.pages.report.times import participant_times

MOST_SHARE = 0.5
"""A phase with more than this share of a cause has most of it."""

Kinds = Mapping[str, str]
"""Kind (``tmpfs``, ``fsdax``, ``block``, ``network``) of each tier by its name."""


def run_answers(rows: Sequence[Row], traffic: Iterable[Row], kinds: Kinds) -> list[str]:
    """What there is to say of some participant jobs taken together, in sentences without a full stop.

    Parameters
    ----------
    rows
        Rows of ``profile.tsv``.
    traffic
        Rows of ``traffic.tsv``; those of other participant jobs are left out.
    kinds
        Kinds of the tiers; of a tier that is not among them, nothing is said that depends on its kind.
    """
    jobs = {(row["run"], row["participant"]) for row in rows}
    flows = [flow for flow in traffic if (flow["run"], flow["participant"]) in jobs]
    if sum(row["wall_s"] for row in rows) <= 0:
        return ["No time was measured"]
    known = [row for time in participant_times(rows) if time.accounted for row in time.phases.values()]
    causes = sum_causes(known)
    timed = time_answers(known, causes, flows, kinds) if causes.made and causes.wall_s > 0 else cpu_alone(rows)
    return timed + cache_answers(rows, flows, kinds) + container_answers(rows, len(jobs))


def cpu_alone(rows: Sequence[Row]) -> list[str]:
    """CPU time of rows without an account, and why there is no more."""
    wall_s, cpu_s = sum(row["wall_s"] for row in rows), sum(row["cpu_s"] for row in rows)
    text = f"CPU time is {percent(cpu_s / wall_s)} of wall time"
    lacking = "Waiting for a core cannot be told from waiting for storage"
    if all(row["run_queue_s"] is not None for row in rows):
        waited_s = sum(row["run_queue_s"] for row in rows)
        text += f"; threads waited {seconds(waited_s)} for a core, added up"
        lacking = "How much of it was waiting for storage is not known"
    return [text, f"{lacking}: {why_no_account(rows)}"]


def saved_at_most_s(row: Row, kinds: Kinds) -> float:
    """Upper bound of what a faster tier saves of one phase, s; its definition heads this module.

    >>> from collections import defaultdict
    >>> row = defaultdict(float, phase="compute", account="exact", work_tier="nfs", account_block_io_s=2.0)
    >>> row["account_other_s"] = 3.0
    >>> saved_at_most_s(row, {"nfs": "network"}), saved_at_most_s(row, {"nfs": "block"})
    (5.0, 2.0)
    """
    accounted = row["account"] is not None
    counter = "account_" if accounted else ""
    queue_s = row[f"{counter}run_queue_s"] or 0.0
    if row["phase"] in MOVING_PHASES:
        return max(0.0, float(row["wall_s"] - row[f"{counter}user_s"] - queue_s))
    if not accounted:
        return max(0.0, float(row["wall_s"] - row["cpu_s"] - queue_s))
    asleep_s = row[OTHER] if kinds.get(row["work_tier"]) == "network" else 0.0
    return float((row[BLOCK_IO] or 0.0) + (asleep_s or 0.0) + max(0.0, row[UNEXPLAINED]))


def time_answers(rows: Sequence[Row], causes: Causes, flows: Sequence[Row], kinds: Kinds) -> list[str]:
    """What a faster tier saves at most, and what was waited for, where notable; of rows with an account."""
    saved_s = sum(saved_at_most_s(row, kinds) for row in rows)
    computing = sum_causes(row for row in rows if row["phase"] not in MOVING_PHASES).cpu_s / causes.wall_s
    bound = f"a faster tier saves at most {causes.about}{percent(min(1.0, saved_s / causes.wall_s))}"
    more = {
        BLOCK_IO: where(rows, BLOCK_IO, flows, kinds),
        RUN_QUEUE: "; run fewer processes at once",
        MEMORY_STALL: "; start fewer participants at once",
        OTHER: f"{where(rows, OTHER, flows, kinds)}; network, locks or timers",
        UNEXPLAINED: "",
    }
    if any(row["account"] and row[BLOCK_IO] is None and row[OTHER] is None for row in rows):
        more[UNEXPLAINED] = f"; part of it may be waiting for storage: {why_no_account(rows)}"
    return [
        f"Compute-bound: {bound}" if computing >= COMPUTE_BOUND_SHARE else bound.capitalize(),
        *(
            f"{LABELS[cause].capitalize()}: {causes.about}{percent(share)} of wall time{text}"
            for cause, text in more.items()
            if (share := causes.share_of(cause)) >= NOTABLE_SHARE
        ),
    ]


def cache_answers(rows: Sequence[Row], flows: Sequence[Row], kinds: Kinds) -> list[str]:
    """Whether the inputs were in the page cache before they were staged in, for tiers that it stands before."""
    staged = [row for row in of_phase(rows, "stage_in") if row["input_resident_before"] is not None]
    total = sum(row["input_bytes"] or 0 for row in staged)
    tiers = {flow["tier"] for flow in flows if flow["phase"] == "stage_in" and flow["read_bytes"] is not None}
    if not total or len(tiers) != 1:
        return []
    (tier,) = tiers
    if kinds.get(tier) not in ("block", "network"):
        return []
    cached = percent(sum(row["input_bytes"] * row["input_resident_before"] for row in staged) / total)
    return [f"{cached} of the inputs were in the page cache; a cold start reads all of them from tier {tier}"]


def container_answers(rows: Sequence[Row], jobs: int) -> list[str]:
    """What starting the containers took, and whether their image was in the page cache."""
    starts = of_phase(rows, "container_start")
    wall_s = sum(row["wall_s"] for row in rows)
    if not starts or wall_s <= 0:
        return []
    started_s = sum(row["wall_s"] for row in starts)
    text = f"Starting the container took {seconds(started_s / jobs)} per participant ({percent(started_s / wall_s)})"
    known = [row for row in starts if row["input_bytes"] and row["input_resident_before"] is not None]
    if known:
        cached = sum(row["input_resident_before"] for row in known) / len(known)
        text += f"; of its image, {size(known[0]['input_bytes'])}, {percent(cached)} was in the page cache before"
    return [text]


def where(rows: Sequence[Row], cause: str, flows: Sequence[Row], kinds: Kinds) -> str:
    """The phase that has most of a cause, and its tiers as far as they are known; nothing if no phase has most.

    Waiting for storage is not laid to a tier in memory, and sleep to none but network tiers.
    """
    spent_s = Counter[str]()
    for row in rows:
        spent_s[row["phase"]] += row[cause] or 0
    phase, most_s = spent_s.most_common(1)[0]
    if len(spent_s) < 2 or most_s <= MOST_SHARE * spent_s.total():
        return ""
    tiers = {flow["tier"] for flow in flows if flow["phase"] == phase}
    if phase not in MOVING_PHASES:
        tiers |= {row["work_tier"] for row in of_phase(rows, phase)}
    waited = {
        tier for tier in tiers if kinds.get(tier) == "network" or (cause == BLOCK_IO and kinds.get(tier) != "tmpfs")
    }
    return f", most of it in {phase}" + (f" on tier {' or '.join(sorted(waited))}" if waited else "")


def of_phase(rows: Iterable[Row], phase: str) -> list[Row]:
    """The rows of one phase."""
    return [row for row in rows if row["phase"] == phase]
