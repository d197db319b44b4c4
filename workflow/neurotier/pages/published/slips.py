"""Known slips of the paper, as footnotes of the figures that they bear on, with what the data at hand say."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from neurotier.bigbrain.tasks import GNU_PARALLEL, SPARK
from neurotier.core.quantities import counted, number, seconds
from neurotier.pages.bigbrain.names import ratio_text
from neurotier.published.bigbrain import BlockRun
from neurotier.published.replay import Replay
from neurotier.published.table_one import device_bandwidths, equation_one_s

CPU_IO = (
    "The text of the paper says that 'Real + Sys' is CPU time and 'User - (Real + Sys)' I/O time. Its plot code"
    " computes CPU = user + sys and I/O = wall - CPU, which is what is shown. On Optane in App Direct mode (DAX) I/O is"
    " copying by the kernel: it counts as sys, hence as CPU."
)
LABELS = (
    "In the names of the logs, tmpfs is Optane in Memory mode (all memory is Optane there) and tmpfsAD is DRAM, the"
    " tmpfs of App Direct mode; the paper's figures call the first one Optane."
)
UNITS = (
    "The paper's Eq. (1) divides MiB by dd's MB/s, and Table I counts dd's 1 GB/s as 1,024 MB/s; both count so here, so"
    " that Eq. (1) is the paper's. In the units that dd means (1 MB = 10^6 bytes), Eq. (1) is 7 % longer on DRAM and"
    " Optane, and 5 % on the SSD and Isilon."
)
UNKNOWN = (
    "What the model does not know: why Optane in App Direct mode gives 20 % more on the 20 µm image than on the 40 µm"
    " image, how the JVM behaves with more processes than a run has shown (its pauses are taken to grow with the blocks"
    " in flight), and what App Direct gives under load where no run on it is known: one stream says nothing of that."
)
SAMPLE = "The paper says 'the entire CoRR dataset'"


def slips_of(figure: str, replay: Replay) -> list[str]:
    """The footnotes of a figure, by its name."""
    kind = figure.partition("_")[0]
    found = {
        "table": [UNITS],
        "makespan": [ssd_estimate(replay, figure), UNITS, LABELS],
        "phases": [spark_writes(replay) if "20um" in figure else "", LABELS],
        "predicted": [UNKNOWN],
        "bids": [CPU_IO if "cpu" in figure else logged_makespans(replay), sample(replay)],
    }
    return [text for text in found.get(kind, []) if text]


def mean_of(runs: Sequence[BlockRun], measure: str) -> float:
    """Mean of a property over repetitions, as the paper has it."""
    return statistics.fmean(float(getattr(run, measure)) for run in runs)


def ssd_estimate(replay: Replay, figure: str) -> str:
    """The SSD's estimate was drawn with another device's write bandwidth; empty if no run bears on it."""
    runs = [run for members in replay.conditions.values() for run in members if run.device == "local SSD"]
    if not runs or figure != "makespan_40um":
        return ""
    bandwidths = device_bandwidths(replay.bandwidths)
    (read, write), (_, memory_write) = bandwidths["local SSD"], bandwidths["DRAM"]
    drawn, own = (equation_one_s(runs[0].data_bytes, read, way) for way in (memory_write, write))
    return (
        "The paper draws the SSD's estimate with DRAM's write bandwidth and calls the SSD 1.4 times slower than"
        f" expected: D/R + D/W is {seconds(drawn)} so, and {seconds(own)} with the SSD's own. Held against that, the"
        " runs are faster than Eq. (1), because writes end in the page cache."
    )


def spark_writes(replay: Replay) -> str:
    """How the writes of Spark compare with those of GNU Parallel in the data at hand."""
    claim = "The text says once that Spark's writes are 1.4 to 1.6 times longer, and once that they take nearly half"
    ratios = []
    for condition, runs in replay.conditions.items():
        other = replace(condition, engine=GNU_PARALLEL)
        if condition.engine == SPARK and not condition.variant and other in replay.conditions:
            ratio = mean_of(runs, "write_s") / mean_of(replay.conditions[other], "write_s")
            ratios.append(f"{ratio_text(ratio)} on {condition.tier} with {condition.parallelism} processes")
    if not ratios:
        return f"{claim}. In the whole repository the first is the reverse; the logs at hand hold no pair to show it."
    return f"{claim}. Spark's summed write time over GNU Parallel's, in the data: {'; '.join(ratios)}."


def logged_makespans(replay: Replay) -> str:
    """By how much the makespans that the logs state are short."""
    gaps = [
        run["makespan_s"] - run["logged_makespan_s"]
        for run in replay.bids_app.runs
        if run["makespan_s"] is not None and run["logged_makespan_s"] is not None
    ]
    if not gaps:
        return ""
    return (
        "The file makespan_seconds of a run is the end of the task that is last by name - the start of the first by"
        f" name: in these logs up to {number(max(gaps))} s short of latest end - earliest start, which is shown."
    )


def sample(replay: Replay) -> str:
    """How many sites and participants the logs hold."""
    tasks = {row["participant"] for row in replay.bids_app.participants}
    sites = {task.rpartition("_")[0] for task in tasks}
    some = f"{counted(len(tasks), 'participant')} of {counted(len(sites), 'site')}"
    return f"{SAMPLE}; the tasks in the logs are {some}." if tasks else ""
