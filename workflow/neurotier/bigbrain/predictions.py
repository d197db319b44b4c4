"""Predict each condition of the incrementation, without knowing any run of it.

``paper``
    Eq. (1), M >= D / R + D / W, with one stream of the tier's probe from and to the device.
``fluid``
    The fluid model, with the probe's speeds at that parallelism, the kernel's write-back settings, and the costs of a
    short run of the engine on small blocks (:func:`learn`). Its interval reaches from the 5th to the 95th percentile of
    draws. Each draw takes each tier between the least and the most that its probe measured, and adds the error that the
    model has even when it knows everything it asks for, ``MODEL_ERROR``.

The model does not know other users of the machine, nor what the JVM costs beyond small blocks when Spark reads whole
files (pairing ``published``).
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from neurotier.bigbrain.engines.spark_events import Driver, drivers_of
from neurotier.bigbrain.tabulation import records_of, working_span
from neurotier.bigbrain.tasks import (
    DELAY,
    INCREMENT,
    PUBLISHED,
    READ,
    SNAKEMAKE,
    SPARK,
    START_UP,
    WRITE,
    Block,
    Task,
    span,
)
from neurotier.core.errors import InputError
from neurotier.core.kinds import is_in_memory
from neurotier.core.parallelism import gaps_s, peak, span_s
from neurotier.core.settings import BigBrainSettings
from neurotier.core.tables import Rows
from neurotier.model.machine import LAUNCH, PageCache, Processors, Step, Workload
from neurotier.model.prediction import FLUID, PAPER, Prediction, least_makespan_s, predict_among
from neurotier.model.this_machine import Probed, machines_of, page_cache_here, processors_here, read_probed


class Calibration(NamedTuple):
    """The costs of an engine at a parallelism; medians where there are several measurements.

    Attributes
    ----------
    start_cpu_s
        CPU time of the start of a process, s; 0 for an engine whose processes outlive a block.
    gap_s
        Time between the end of a block and the start of the block that takes its place, s.
    increment_cpu_s_per_byte
        CPU time of adding one, s/byte; with the pairing ``published`` it includes reading from memory.
    around_s
        Time before the first block and after the last one, s: the start and the end of Spark's session.
    """

    start_cpu_s: float
    gap_s: float
    increment_cpu_s_per_byte: float
    around_s: float


def learn(task: Task, records: Rows, drivers: Sequence[Driver], processors: Processors) -> Calibration:
    """Learn an engine's costs from a calibration.

    Parameters
    ----------
    task, records, drivers
        The run, the records of its blocks, and what each start of Spark did.
    processors
        The processors on which it ran: with more processes than processors, times exceed CPU times.

    Raises
    ------
    InputError
        If there is no record.
    """
    last = max(records, key=lambda record: span(record)[1], default={}).get("attempt")
    records = [record for record in records if record.get("attempt") == last]  # time between attempts is not a gap
    phases = [phase for record in records for phase in record["phases"]]
    incremented = [phase for phase in phases if phase["phase"] == INCREMENT]
    if not incremented:
        raise InputError("a calibration left no record", f"run {task.run}", "start with --forcerun begin_increment")
    at_once, spans = peak([working_span(record) for record in records]), [span(record) for record in records]
    gaps = [max(0.0, gap) for gap in gaps_s(spans, at_once)]
    starting_s = [phase["duration_s"] for phase in phases if phase["phase"] == START_UP]
    speed, driver = processors.speed(at_once), drivers[-1] if drivers else None
    increment_s, increment_bytes = (sum(phase[name] for phase in incremented) for name in ("duration_s", "bytes"))
    return Calibration(
        start_cpu_s=speed * statistics.median(starting_s or [0.0]),
        gap_s=statistics.median(gaps or [0.0]),
        increment_cpu_s_per_byte=speed * increment_s / increment_bytes,
        around_s=driver.end_s - driver.start_s - span_s(spans) if driver and driver.end_s else 0.0,
    )


class Prospect(NamedTuple):
    """What is known about a condition before its runs.

    Attributes
    ----------
    asked
        The settings of its runs.
    blocks
        The blocks to increment.
    probes
        The probe of each tier.
    processors, page_cache
        Those of this machine.
    engine, tier, parallelism
        The condition.
    calibration
        The engine's costs other than moving the blocks' bytes.
    """

    asked: BigBrainSettings
    blocks: Sequence[Block]
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache
    engine: str
    tier: str
    parallelism: int
    calibration: Calibration

    @property
    def data_bytes(self) -> int:
        """Size of all blocks, bytes."""
        return sum(block.bytes for block in self.blocks)

    @property
    def is_apart(self) -> bool:
        """Whether the engine has one job per block and iteration instead of one per block."""
        return self.engine == SNAKEMAKE or (self.engine == SPARK and self.asked.pairing == PUBLISHED)

    def rows(self) -> Rows:
        """The rows of ``bigbrain_predictions.tsv``, one for each member of the model."""
        simulated, around_s = self.fluid(), self.calibration.around_s
        about = {"engine": self.engine, "tier": self.tier, "parallelism": self.parallelism}
        none = dict.fromkeys(("low_s", "high_s", "limit"))
        whole = 1 + around_s / simulated.makespan_s  # the session's time is as uncertain as the work within it
        times = {"predicted_s": simulated.makespan_s, "low_s": simulated.low_s, "high_s": simulated.high_s}
        limit = "Spark's session" if around_s > simulated.makespan_s else simulated.usual.limit
        return [
            about | {"member": PAPER, "predicted_s": self.equation_one_s()} | none,
            about | {"member": FLUID, "limit": limit} | {name: whole * time_s for name, time_s in times.items()},
        ]

    def equation_one_s(self) -> float:
        """Eq. (1), s: every iteration reads and writes the image once, with one stream, from and to the device."""
        moved, figures = self.data_bytes * self.asked.iterations, self.probes[self.tier].usual
        return least_makespan_s(moved, moved, figures.single_read_bytes_per_s, figures.single_write_bytes_per_s)

    def fluid(self) -> Prediction:
        """The fluid model's prediction from the start of the first block to the end of the last one."""
        usual, drawn = machines_of(self.probes, self.parallelism, self.processors, self.page_cache)
        workload = self.workload()
        if self.asked.fsync:  # nothing remains to be written back
            usual.tiers[self.tier] = replace(usual.tiers[self.tier], write_back=False)
        return predict_among((workload, usual), lambda rng: (workload, drawn(rng)), self.parallelism)

    def workload(self) -> Workload:
        """The work to do, in the order in which the engine starts it.

        The engine's gap precedes every job that takes the place of another. The CPU time of copying is included in the
        tier's streams. Phases that alternate in reality follow one another here, which takes as long.
        """
        known, tier, every = self.calibration, self.tier, list(range(1, self.asked.iterations + 1))
        jobs = [(block, every) for block in self.blocks]
        if self.is_apart:
            jobs = [(block, [k]) for k in every for block in self.blocks]
        tasks = []
        for number, (block, iterations) in enumerate(jobs):
            steps = [Step(LAUNCH, "wait", known.gap_s)] if number >= self.parallelism else []
            steps.append(Step(START_UP, "compute", known.start_cpu_s))
            for k in iterations:
                steps += [
                    Step(READ, "read", block.bytes, tier, cached=self.is_cached(k)),
                    Step(INCREMENT, "compute", block.bytes * known.increment_cpu_s_per_byte),
                    Step(WRITE, "write", block.bytes, tier),
                    Step(DELAY, "wait", self.asked.delay_s),
                ]
            tasks.append(tuple(steps))
        return Workload(tasks)

    def is_cached(self, iteration: int) -> bool:
        """Whether an iteration finds its blocks in the page cache: they were read or written just before, and fit.

        This is false for a tier in memory, where files are read at the tier's own speed.
        """
        if is_in_memory(self.probes[self.tier].usual.kind) or (iteration == 1 and self.asked.cache == "cold"):
            return False
        since = 2.0 * self.data_bytes
        if iteration > 1 and not self.is_apart:
            since *= self.parallelism / max(1, len(self.blocks))
        return since < self.page_cache.available_bytes


def predict(
    asked: BigBrainSettings,
    blocks: Mapping[str, Sequence[Block]],
    probes: Mapping[str, Path],
    calibrations: Iterable[Path],
) -> Rows:
    """The rows of ``bigbrain_predictions.tsv`` for every engine and parallelism on every tier that was probed.

    Parameters
    ----------
    asked
        The settings of the runs.
    blocks
        The blocks on each tier.
    probes
        The file of each tier's probe; none if nothing is to be predicted.
    calibrations
        Folders of the calibrations in the results, one for each engine and parallelism.
    """
    machine = processors_here(1, others=0.0), page_cache_here(0.0)
    learned = {}
    for folder in calibrations:
        task = Task.load(folder / "plan.json")
        learned[task.engine, task.parallelism] = learn(task, records_of(task), drivers_of(folder), machine[0])
    probed = {tier: read_probed(file) for tier, file in probes.items()}
    return [
        row
        for tier, at_once, engine in itertools.product(probed, asked.parallelism, asked.engines)
        for row in Prospect(
            asked, blocks[tier], probed, *machine, engine, tier, at_once, learned[engine, at_once]
        ).rows()
    ]
