"""Calibration: which participants are analysed first, to learn what the analysis costs; and what their records show:
what each phase took and moved, and how that grows with the size of the images."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neurotier.analysis.needs import threads_of
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.files import Record, read_json
from neurotier.core.parallelism import PHASES
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import finite
from neurotier.dataset.bids import Image, size_of
from neurotier.run.compared import reading
from neurotier.run.disturbance import DISTURBED
from neurotier.run.participants import selected_by

MOVED = ("read_bytes", "read_files", "written_bytes", "written_files")
QUANTITIES = ("cpu_s", "wait_s", *MOVED, "made_files")

BETWEEN = "between"
"""What a job does between its phases, treated as a phase: it starts the process of each phase, checks files, and makes
and removes its work folder. All that time counts as work of a processor."""

BY_IMAGE = ("stage_in", "compute", "stage_out")
"""Phases whose base cost is that of one image: a tool processes a participant's images one by one."""


@dataclass(frozen=True)
class ObservedJob:
    """A participant job that has been run.

    Attributes
    ----------
    participant, run
        The participant, and the run that analysed it.
    size_bytes, images
        Size of the participant's images according to the index, and their number; 1 for an app, which processes all
        together.
    phases
        The quantities of each phase and of :data:`BETWEEN`: time on processors, counted in jobs, and asleep, s; bytes
        and files read from the tier that the phase reads, and written to the tier that it writes; files that were seen
        in its work folder.
    start_s, end_s
        Start of its process and end of its last phase, s since 1970.
    queue_s
        Time spent waiting for a processor, s; ``None`` if the kernel does not account for it.
    max_rss_bytes
        Peak memory of its largest process.
    got
        Cost of the job that fetched its images, from the record; ``None`` if there was no such job.
    work_tier, host
        Tier of its work folder, and the machine; empty if unknown.
    was_disturbed
        Whether other processes disturbed its run.
    """

    participant: str
    run: str
    size_bytes: int
    phases: dict[str, dict[str, float]]
    start_s: float
    end_s: float
    queue_s: float | None
    max_rss_bytes: int
    got: Record | None = None
    work_tier: str = ""
    host: str = ""
    was_disturbed: bool = False
    images: int = 1

    @property
    def cpu_s(self) -> float:
        """CPU time of all phases, s."""
        return cpu_s_of(self.phases)

    @property
    def queueing(self) -> float:
        """How many times as long computing took as with a processor of its own."""
        return 1 + (self.queue_s or 0.0) / self.cpu_s if self.cpu_s else 1.0


def cpu_s_of(phases: Mapping[str, Mapping[str, float]]) -> float:
    """CPU time of all phases, s."""
    return sum(phase["cpu_s"] for phase in phases.values())


def choose(sizes: Mapping[str, int], count: int) -> list[str]:
    """Participants of different sizes near the median, to show how time grows with size.

    They divide the participants, sorted by size, into equal parts: if two are chosen, those at one third and two
    thirds.

    Examples
    --------
    >>> choose({"a": 90, "b": 10, "c": 50, "d": 30, "e": 70, "f": 20, "g": 80}, 2)
    ['d', 'e']
    >>> choose({"a": 1, "b": 2}, 5), choose(dict(zip("edcba", range(5))), 5)
    (['a', 'b'], ['e', 'd', 'c', 'b', 'a'])
    >>> choose({"a": 1, "b": 2, "c": 3}, 2)
    ['b', 'c']
    """
    ranked = sorted(sizes, key=lambda name: (sizes[name], name))
    if count >= len(ranked):
        return ranked
    return [ranked[len(ranked) * part // (count + 1)] for part in range(1, count + 1)]


def read_observed(settings: Settings, places: Places) -> list[ObservedJob]:
    """Participant jobs of this tool with these options, from the records that ``advice.calibration`` names, by default
    the run's own.

    Jobs of runs that other processes disturbed are used only if there are no others.

    Raises
    ------
    SettingsError, InputError
        If the named folder is not a results folder of this version, or has no record of this tool with these options.
    """
    folder = Path(settings.advice.calibration) if settings.advice.calibration else None
    where = places if folder is None else Places(*[folder] * 5)
    table = where.images_table
    if folder is not None and not table.exists():
        raise SettingsError(
            "is not the results folder of a run", f"config key advice.calibration: {folder}", "correct it"
        )
    fix = "name the results folder of a run by this version"
    with nullcontext() if folder is None else reading(folder, fix):
        selected = selected_by(table)
        records = [read_json(where.record(name)) for name in selected if where.record(name).exists()]
        facts = {file.stem: read_json(file) for file in where.runs.glob("*.json")}
        asked = analysis(settings.to_json())
        # The run's own results are all of one tool (neurotier.run.preconditions), even those whose run has lost its
        # facts.
        lost = {} if folder else asked
        tools = {name: analysis(each["settings"]) for name, each in facts.items()}
        same = [record for record in records if tools.get(record["run"], lost) == asked]
        if not same and folder is not None:
            others = sorted({str(record["tool"]) for record in records})
            raise InputError(
                f"has no record of {asked['name']} with these options"
                + (f", but of {', '.join(others)}" if others else ""),
                f"config key advice.calibration: {folder}",
                "name the results folder of a run with the same tool",
            )
        rows = {name: each.get("row") or {} for name, each in facts.items()}
        quiet = [record for record in same if DISTURBED not in rows.get(record["run"], {}).get("valid", "")]
        return [
            replace(observe(record, selected[record["participant"]], threads_of(settings)), was_disturbed=not quiet)
            for record in quiet or same
        ]


def analysis(settings: Record) -> Record:
    """The settings that determine what an analysis costs."""
    app, tool = settings["app"], settings["tool"]
    if app["image"]:
        return {"name": app["image"], "arguments": app["arguments"]}
    return {"name": tool["name"], "options": tool["options"], "image": tool["image"] and settings["in_containers"]}


def observe(record: Record, images: Sequence[Image], threads: int) -> ObservedJob:
    """A job of ``threads`` threads, from its record and the participant's images."""
    rows = record["phases"]
    start_s, end_s = min(row["start_s"] for row in rows), max(row["end_s"] for row in rows)
    between_s = max(0.0, end_s - start_s - record["slot_wait_s"] - sum(row["end_s"] - row["start_s"] for row in rows))
    queues = [row["run_queue_s"] for row in rows]
    job = ObservedJob(
        participant=record["participant"],
        run=record["run"],
        size_bytes=size_of(images),
        images=1 if "calls" in record else len(images),
        phases={row["phase"]: quantities(row, threads) for row in rows},
        start_s=start_s,
        end_s=end_s,
        queue_s=None if None in queues else finite(sum(queues)),
        max_rss_bytes=max(row["max_rss_bytes"] for row in rows),
        got=record.get("got"),
        work_tier=record.get("work_tier") or "",
        host=record.get("host") or "",
    )
    job.phases[BETWEEN] = dict.fromkeys(QUANTITIES, 0.0) | {"cpu_s": between_s / job.queueing}
    return job


def quantities(row: Record, threads: int) -> dict[str, float]:
    """The quantities of one phase of a job of ``threads`` threads, with processors counted in jobs.

    A job occupies its processors as long as any of its threads is on one, and at least as long as its CPU time takes on
    all of them. What the compute phase reads from the work tier is not measured; it is assumed to read its input once.
    While staging sleeps, it waits for its tiers, which the model accounts for by their speeds.
    """
    exact = [flow for flow in row["traffic"] if flow["traffic_source"] in ("staging", "growth", "page_cache")]
    moved = {name: sum(flow[name] or 0 for flow in exact) for name in MOVED}
    asleep_s = row["account_other_s"]
    if asleep_s is None:  # sleep is part of the residual if the kernel does not account for waits for storage
        asleep_s = max(0.0, row["residual_s"] or 0.0)
    found = moved | {
        "cpu_s": max(row["cpu_s"] / threads, min(row["cpu_s"], row["wall_s"] - asleep_s)),
        "wait_s": 0.0 if row["phase"].startswith("stage_") else asleep_s,
        "read_bytes": moved["read_bytes"] or (row["input_bytes"] or 0),
        "made_files": sum(flow["made_files"] or 0 for flow in exact if flow["traffic_source"] == "growth"),
    }
    return {name: finite(value) for name, value in found.items()}


FEW = 4
"""With fewer records than this, base and slope are mostly due to chance, and predictions also try the two extremes."""

Costs = dict[str, dict[str, "Scaling"]]
"""The scaling of each quantity of each phase."""


@dataclass(frozen=True)
class Scaling:
    """A base, and an amount per byte of a participant's images; neither is negative."""

    base: float
    per_byte: float

    def of(self, size_bytes: float, times: int = 1) -> float:
        """The amount for images of this total size, with ``times`` times the base."""
        return times * self.base + self.per_byte * size_bytes


def fit(sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """Base and slope by non-negative least squares.

    Examples
    --------
    >>> growing, falling = fit([100, 300], [2.0, 4.0]), fit([100, 300], [4.0, 2.0])
    >>> round(growing.base, 6), round(growing.per_byte, 6), round(falling.base, 6), falling.per_byte
    (1.0, 0.01, 3.0, 0.0)
    """
    from scipy.optimize import nnls  # slow to load, and not needed by the page, which imports this module

    scale = max(sizes) or 1.0  # both columns need one magnitude, or the solver calls the matrix singular
    (base, slope), _ = nnls(np.array([[1.0, size / scale] for size in sizes]), np.array(amounts, dtype=float))
    return Scaling(float(base), float(slope / scale))


def constant(_sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """The mean, independent of size."""
    return Scaling(statistics.fmean(amounts), 0.0)


def proportional(sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """In proportion to size, without a base."""
    return Scaling(0.0, sum(amounts) / sum(sizes)) if sum(sizes) else constant(sizes, amounts)


Way = Callable[[Sequence[float], Sequence[float]], Scaling]


def costs_of(observed: Sequence[ObservedJob], way: Way = fit) -> Costs:
    """The scaling of every quantity of every phase.

    Parameters
    ----------
    way
        :func:`fit`, or one of the extremes :func:`constant` and :func:`proportional`. It applies to the CPU time and
        the sleep of the compute phase; all else is always fitted.
    """

    def scaling(phase: str, quantity: str) -> Scaling:
        counts = [job.images if phase in BY_IMAGE else 1 for job in observed]
        shares = [
            (job.size_bytes / count, job.phases.get(phase, {}).get(quantity, 0.0) / count)
            for job, count in zip(observed, counts, strict=True)
        ]
        return (way if quantity.endswith("_s") and phase == "compute" else fit)(*zip(*shares, strict=True))

    known = [phase for phase in (*PHASES, BETWEEN) if any(phase in job.phases for job in observed)]
    return {phase: {quantity: scaling(phase, quantity) for quantity in QUANTITIES} for phase in known}


def amounts_of(costs: Costs, size_bytes: float, images: int) -> dict[str, dict[str, float]]:
    """What a participant's analysis takes, by phase and quantity."""
    return {
        phase: {name: one.of(size_bytes, images if phase in BY_IMAGE else 1) for name, one in cost.items()}
        for phase, cost in costs.items()
    }


def ways_of(observed: Sequence[ObservedJob]) -> tuple[Way, ...]:
    """The scalings that the records do not rule out: only images of different sizes separate base and slope."""
    sizes = {job.size_bytes / job.images for job in observed}
    return (fit,) if len(sizes) >= FEW and max(sizes) >= 2 * min(sizes) else (fit, constant, proportional)


def scatter(observed: Sequence[ObservedJob], costs: Costs) -> float:
    """Standard deviation of the logarithm of a job's CPU time around the value that the scaling gives for its size.

    A fit to two or three records leaves almost no residual; the better one of the two extremes is then used instead.
    """
    if len(observed) < 2:
        return 0.0
    if len(observed) >= FEW:
        return deviation(observed, costs, len(observed) - 2)
    return min(deviation(observed, costs_of(observed, way), len(observed) - 1) for way in (constant, proportional))


def deviation(observed: Sequence[ObservedJob], costs: Costs, freedom: int) -> float:
    """Root mean square of the logarithm of CPU time over expected CPU time, with ``freedom`` degrees of freedom."""
    misses = [
        math.log(job.cpu_s / expected)
        for job in observed
        if job.cpu_s > 0 and (expected := cpu_s_of(amounts_of(costs, job.size_bytes, job.images))) > 0
    ]
    return math.sqrt(sum(miss**2 for miss in misses) / freedom)
