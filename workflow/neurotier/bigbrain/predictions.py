"""What the model predicts for each condition of the incrementation, without having seen any run of it.

``paper``
    Eq. (1), M >= D / R + D / W, with one stream of the tier's probe from and to the device.
``fluid``
    The fluid model: the probe's speeds at that parallelism, the kernel's write-back settings, and what a short run of
    the engine on small blocks has cost (:mod:`neurotier.bigbrain.calibration`). Its interval is from the 5th to the
    95th percentile of draws, each tier between the least and the most that its probe measured, and around each of them
    by how much the model is off where it knows all that it asks for, ``MODEL_ERROR``.

Not known to it: what the JVM costs when Spark reads whole files (pairing ``published``) beyond what small blocks cost,
and other users of the machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neurotier.bigbrain.calibration import Calibration, learn
from neurotier.bigbrain.plan import FINISHED
from neurotier.bigbrain.tables import read_if_there
from neurotier.bigbrain.tabulation import records_of
from neurotier.bigbrain.tasks import DELAY, INCREMENT, PUBLISHED, READ, SNAKEMAKE, SPARK, START_UP, WRITE, Block, Task
from neurotier.core.kinds import is_in_memory
from neurotier.core.settings import BigBrainSettings
from neurotier.core.tables import Row
from neurotier.model.machine import Machine, PageCache, Processors
from neurotier.model.paper import least_makespan_s
from neurotier.model.prediction import FLUID, PAPER, Simulated, Situation, predict_among
from neurotier.model.this_machine import Probed, between, machine_of, page_cache_here, processors_here, read_probed
from neurotier.model.workload import LAUNCH, Step, Workload
from neurotier.storage.probe.tier_figures import TierFigures


@dataclass(frozen=True)
class Basis:
    """What is known before a run.

    Attributes
    ----------
    asked
        What is to be done.
    blocks
        What is incremented.
    probes
        Tier to what was measured of it.
    processors, page_cache
        Of this machine.
    """

    asked: BigBrainSettings
    blocks: Sequence[Block]
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache

    @property
    def data_bytes(self) -> int:
        """Size of all blocks, bytes."""
        return sum(block.bytes for block in self.blocks)


def predict(
    asked: BigBrainSettings,
    blocks: Mapping[str, Sequence[Block]],
    probes: Mapping[str, Path],
    calibrations: Iterable[Path],
) -> list[Row]:
    """Rows of ``bigbrain_predictions.tsv`` for every engine and parallelism on every tier that was probed.

    Parameters
    ----------
    asked
        What is to be done.
    blocks
        Tier to its blocks.
    probes
        Tier to the file of its probe; none if nothing is to be predicted.
    calibrations
        Folders of the calibrations in the results, one for each engine and parallelism.
    """
    processors, page_cache = processors_here(1, others=0.0), page_cache_here(0.0)
    learned = {}
    for folder in calibrations:
        task = Task.load(folder / "plan.json")
        calibration = learn(task, records_of(task), read_if_there(folder / FINISHED), processors)
        learned[task.engine, task.parallelism] = calibration
    probed = {tier: read_probed(file) for tier, file in probes.items()}
    rows = []
    for tier, parallelism, engine in itertools.product(probed, asked.parallelism, asked.engines):
        basis = Basis(asked, blocks[tier], probed, processors, page_cache)
        rows += rows_of(basis, engine, tier, parallelism, learned[engine, parallelism])
    return rows


def rows_of(basis: Basis, engine: str, tier: str, parallelism: int, calibration: Calibration) -> list[Row]:
    """Rows of ``bigbrain_predictions.tsv`` for a condition: what each member predicts."""
    simulated = fluid_prediction(basis, engine, tier, parallelism, calibration)
    about = {"engine": engine, "tier": tier, "parallelism": parallelism}
    none = {"low_s": None, "high_s": None, "limit": None}
    whole = 1 + calibration.around_s / simulated.makespan_s  # the session is known as well as what is within it
    return [
        about | {"member": PAPER, "predicted_s": equation_one_s(basis, tier)} | none,
        about
        | {
            "member": FLUID,
            "predicted_s": simulated.makespan_s * whole,
            "low_s": simulated.low_s * whole,
            "high_s": simulated.high_s * whole,
            "limit": "Spark's session" if calibration.around_s > simulated.makespan_s else simulated.usual.limit,
        },
    ]


def equation_one_s(basis: Basis, tier: str) -> float:
    """Eq. (1), s: every iteration reads and writes the image once, by one stream, from and to the device."""
    moved = basis.data_bytes * basis.asked.iterations
    figures = basis.probes[tier].usual
    return least_makespan_s(moved, moved, figures.single_read_bytes_per_s, figures.single_write_bytes_per_s)


def fluid_prediction(basis: Basis, engine: str, tier: str, parallelism: int, calibration: Calibration) -> Simulated:
    """What the fluid model predicts for the blocks, from the start of the first to the end of the last."""
    machines = {
        end: machine_here(basis, tier, parallelism, {name: getattr(probe, end) for name, probe in basis.probes.items()})
        for end in ("usual", "low", "high")
    }

    workload = workload_of(basis, engine, tier, parallelism, calibration)

    def draw(rng: np.random.Generator) -> Situation:
        where = {name: float(rng.uniform(-1, 1)) for name in machines["usual"].tiers}
        return workload, between(machines["usual"], machines["low"], machines["high"], where)

    return predict_among((workload, machines["usual"]), draw, parallelism)


def machine_here(basis: Basis, tier: str, parallelism: int, figures: Mapping[str, TierFigures]) -> Machine:
    """This machine with one set of figures; with ``fsync`` nothing is left to be written back."""
    machine = machine_of(figures, parallelism, basis.processors, basis.page_cache)
    if basis.asked.fsync:
        machine.tiers[tier] = replace(machine.tiers[tier], write_back=False)
    return machine


def workload_of(basis: Basis, engine: str, tier: str, parallelism: int, calibration: Calibration) -> Workload:
    """What there is to do, in the order in which the engine starts it.

    A job per block and iteration (Snakemake; Spark when it reads whole files), or a job per block. The engine's gap
    comes before every job that takes the place of another.
    """
    asked = basis.asked
    apart = engine == SNAKEMAKE or (engine == SPARK and asked.pairing == PUBLISHED)
    every = list(range(1, asked.iterations + 1))
    jobs = [(block, [k]) for k in every for block in basis.blocks] if apart else [(one, every) for one in basis.blocks]
    launch = Step(START_UP, "compute", calibration.start_cpu_s)
    tasks = []
    for number, (block, iterations) in enumerate(jobs):
        gap_s = calibration.gap_s if number >= parallelism else 0.0
        steps = [Step(LAUNCH.phase, "wait", gap_s), launch]
        for k in iterations:
            steps += steps_of(basis, tier, block, is_cached(basis, tier, k, apart, parallelism), calibration)
        tasks.append(tuple(steps))
    return Workload(tasks)


def steps_of(basis: Basis, tier: str, block: Block, cached: bool, calibration: Calibration) -> list[Step]:
    """One iteration of a block. Copying is within the tier's streams; phases that alternate add up as well in turn."""
    return [
        Step(READ, "read", block.bytes, tier, cached=cached),
        Step(INCREMENT, "compute", block.bytes * calibration.increment_cpu_s_per_byte),
        Step(WRITE, "write", block.bytes, tier),
        Step(DELAY, "wait", basis.asked.delay_s),
    ]


def is_cached(basis: Basis, tier: str, iteration: int, apart: bool, parallelism: int) -> bool:
    """Whether an iteration finds its blocks in the page cache: what was read, or written just before, and fits.

    Files in memory by nature are read at their tier's own speed.
    """
    if is_in_memory(basis.probes[tier].usual.kind) or (iteration == 1 and basis.asked.cache == "cold"):
        return False
    size = basis.data_bytes
    since = 2 * size if apart or iteration == 1 else 2 * parallelism * size / max(1, len(basis.blocks))
    return since < basis.page_cache.available_bytes
