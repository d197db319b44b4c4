"""What the rules of the incrementation need to know while Snakemake builds its graph of jobs."""

from __future__ import annotations

import itertools
import math
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.bigbrain.engines.numa import node_of, pinning, prefix
from neurotier.bigbrain.tasks import ALL, GNU_PARALLEL, NONE, SNAKEMAKE, SPARK, Block, Task
from neurotier.core.errors import SettingsError
from neurotier.core.files import Record, once_per_version, without
from neurotier.core.places import Places, short_hash
from neurotier.core.processes import current_run
from neurotier.core.settings import ROLES, BigBrainSettings, Settings
from neurotier.core.tables import read_table
from neurotier.core.tiers import Tier, tier_named

if TYPE_CHECKING:
    from neurotier.bigbrain.blocks.sources import Source

ENGINE_NAMES = (SNAKEMAKE, GNU_PARALLEL, SPARK)
BLOCK_KEYS = ("source", "resolution_um", "count", "scale", "seed", "split")
INCREMENT_KEYS = ("iterations", "delay_s", "pairing", "fsync", "cache", "numa", "keep")
CALIBRATION_KEYS = ("pairing", "fsync", "numa")
SPARK_KEYS = ("spark_master", "spark_options")

load_task = once_per_version(Task.load)
"""Read each version of a plan once: thousands of jobs ask for the same plan, which may be rewritten meanwhile."""

FINISHED, CHECKED = "finished.json", "checked.json"
"""Files that a run's engine, and the check of its output, write next to its plan."""

CALIBRATION = 0
"""Repetition number of a calibration: a short run on small blocks that shows what an engine costs. No table of runs
has it."""

CALIBRATIONS = "calibration"
"""Folder of the blocks of all calibrations, in the folder of these results on a tier."""

CALIBRATION_SCALE = 0.2
"""Scale of the published shape, which makes 5 MB per block: starts take much of the time, and incrementing takes enough
to be timed."""

CALIBRATION_BLOCKS = 6
"""Least number of blocks of a calibration; with a high parallelism, it has two per worker, so that gaps are seen."""


class BigBrainPlan:
    """Input files, resources and parameters for the rules of the incrementation."""

    def __init__(self, settings: Settings, places: Places, node_class: str = "") -> None:
        self.settings, self.places, self.node_class, self.asked = settings, places, node_class, settings.bigbrain

    @property
    def tiers(self) -> list[str]:
        """Names of the tiers on which blocks are read and written."""
        return self.asked.tiers or [self.settings.placement["work"]]

    @cached_property
    def runs(self) -> list[str]:
        """All runs in order, each as ``ENGINE/TIER/PARALLELISM/REPETITION``.

        Repetitions are the outermost loop, so that a slow drift of the machine affects all conditions alike.
        """
        repetitions = range(1, self.asked.repetitions + 1)
        every = itertools.product(repetitions, self.tiers, self.asked.parallelism, self.asked.engines)
        return [f"{engine}/{tier}/{parallelism}/{repetition}" for repetition, tier, parallelism, engine in every]

    @cached_property
    def calibrations(self) -> list[str]:
        """The calibrations, on the first tier, for each engine and parallelism; none if nothing is predicted."""
        every = itertools.product(self.asked.parallelism, self.asked.engines) if self.asked.predict else ()
        return [f"{engine}/{self.tiers[0]}/{parallelism}/{CALIBRATION}" for parallelism, engine in every]

    @property
    def order(self) -> list[str]:
        """All runs and calibrations in the order in which they are done, one after the other."""
        return [*self.runs, *self.calibrations]  # calibrations are last, so that they cannot affect the runs

    @property
    def shares(self) -> int:
        """Total amount of the resource that jobs of the engine ``snakemake`` share."""
        return math.lcm(*self.asked.parallelism)

    def share(self, run: str) -> int:
        """Amount of this resource that a job of a run takes."""
        return self.shares // parallelism_of(run)

    def settings_of(self, run: str) -> BigBrainSettings:
        """The settings of a run: those of the configuration, or, for a calibration, one iteration on small blocks.

        A calibration measures the costs other than reading. With a pairing that makes reading part of incrementing,
        reading must therefore cost little, so the cache is warm.
        """
        if not is_calibration(run):
            return self.asked
        return replace(
            self.asked,
            source="synthetic",
            count=max(CALIBRATION_BLOCKS, 2 * parallelism_of(run)),
            scale=CALIBRATION_SCALE,
            iterations=1,
            delay_s=0.0,
            keep=NONE,
            cache="warm",
        )

    def source(self, run: str) -> Source:
        """The source of a run's blocks."""
        from neurotier.bigbrain.blocks.sources import source_of  # imported here, since other targets do not need it

        return source_of(self.settings_of(run))

    @cached_property
    def names(self) -> Callable[[str], list[str]]:
        """A function that looks up the names of a run's blocks only once, since Snakemake asks for every job."""
        return cache(lambda run: self.source(run).names())

    def blocks_params(self, wildcards: Any) -> Record:
        """What determines the blocks on a tier; if it changes, they are made again."""
        from neurotier.bigbrain.blocks.sources import versions_of  # as above

        tier = tier_named(self.settings, wildcards.tier)
        about = {"files": short_hash("\n".join(versions_of(self.asked))), "path": str(tier.path), "kind": tier.kind}
        return {key: getattr(self.asked, key) for key in BLOCK_KEYS} | about

    def increment_params(self, wildcards: Any) -> Record:
        """What determines the work on the blocks; if it changes, the work is done again."""
        keys = CALIBRATION_KEYS if is_calibration(wildcards.run) else INCREMENT_KEYS
        more = SPARK_KEYS if wildcards.run.startswith(f"{SPARK}/") else ()
        return {key: getattr(self.asked, key) for key in (*keys, *more)}

    def node_configuration(self, configuration: Record) -> Record:
        """The part of the given configuration that tells a node of a cluster what to do."""
        results_tier = self.settings.placement["results"]
        return {
            "probe": without(configuration.get("probe") or {}, "tiers"),
            "bigbrain": {**(configuration.get("bigbrain") or {}), "tiers": self.tiers},
            "tiers": {name: dict(configuration["tiers"][name]) for name in dict.fromkeys([*self.tiers, results_tier])},
            "placement": dict.fromkeys(ROLES, results_tier),
        }

    def manifests(self) -> list[Path]:
        """The manifest of the blocks on each tier."""
        return [self.places.bigbrain_blocks(tier) for tier in self.tiers]

    @property
    def published(self) -> dict[str, Path]:
        """The tables of the published experiment for the report; none unless the configuration includes it."""
        names = ("published_runs", "published_phases", "published_predictions") if self.settings.published else ()
        return {name: self.places.published / f"{name}.tsv" for name in names}

    def before(self, run: str) -> list[Path]:
        """The file that a run waits for: the check of the run before it."""
        before = dict(zip(self.order[1:], self.order, strict=False)).get(run)
        return [self.checked(before)] if before else []

    def checked(self, run: str) -> Path:
        """The file that the check of a run writes."""
        return self.places.bigbrain_run(run) / CHECKED

    def needed_bytes(self, source: Source) -> int:
        """Bytes on a tier for blocks as large as the first one, and for those that one run writes.

        The input of an iteration stays until the next iteration is complete.
        """
        names, iterations = source.names(), self.asked.iterations
        kept = iterations if self.asked.keep == ALL else min(iterations, 2)
        return len(names) * source.block(names[0])[0].file_bytes * (1 + kept)

    def record(self, run: str, block: str, iteration: int) -> Path:
        """The record that a job of the engine ``snakemake`` writes."""
        return self.places.bigbrain_run(run) / "records" / f"{block}_{iteration}.json"

    def iteration_before(self, run: str, block: str, iteration: str) -> list[Path]:
        """The record that such a job waits for: that of the iteration whose block it reads."""
        return [self.record(run, block, int(iteration) - 1)] if int(iteration) > 1 else []

    def prefix(self, plan: Path | str, block: str) -> str:
        """The words before the command of such a job, which pin it as its run's plan says."""
        if self.asked.numa == NONE:
            return ""
        return "".join(f"{word} " for word in prefix(node_of(load_task(Path(plan)), block)))

    def done(self, run: str) -> list[Path]:
        """The files that the check of a run waits for."""
        if not run.startswith(f"{SNAKEMAKE}/"):
            return [self.places.bigbrain_run(run) / FINISHED]
        return [self.record(run, name, self.settings_of(run).iterations) for name in self.names(run)]

    def probes(self) -> list[Path]:
        """The probes of the tiers, on which predictions are based; none if nothing is predicted."""
        return [self.places.probe_table(tier, self.node_class) for tier in self.tiers] if self.asked.predict else []

    def tier(self, name: str) -> Tier:
        """A tier on which blocks are read and written.

        Raises
        ------
        SettingsError
            If each node has its own: a block may be read on another node than the one that wrote it.
        TierError
            If it is missing, not writable, or not as declared.
        """
        tier = tier_named(self.settings, name)
        if tier.node:
            problem = f"tier {name!r} is each node's own (node: true), and all jobs must see the same blocks"
            raise SettingsError(problem, "config key bigbrain.tiers", "name a tier that all nodes share")
        tier.check()
        return tier

    def folder(self, tier: str) -> Path:
        """The folder of these results on a tier."""
        return self.tier(tier).folder("bigbrain") / short_hash(str(self.places.results))

    def blocks_folder(self, run: str) -> Path:
        """The folder of the blocks that a run reads."""
        folder = self.folder(tier_of(run))
        return folder / CALIBRATIONS / run.replace("/", "_") if is_calibration(run) else folder / "blocks"

    def task(self, run: str) -> Task:
        """A run with all that its workers need to know; the blocks of a calibration are made only when it begins."""
        asked, (pinned, nodes) = self.settings_of(run), pinning(self.asked.numa)
        made = () if is_calibration(run) else read_manifest(self.places.bigbrain_blocks(tier_of(run)))
        return Task(
            run=run,
            tier=tier_of(run),
            folder=str(self.folder(tier_of(run)) / "runs" / run),
            records=str(self.places.bigbrain_run(run) / "records"),
            iterations=asked.iterations,
            delay_s=asked.delay_s,
            pairing=asked.pairing,
            fsync=asked.fsync,
            keep=asked.keep,
            blocks=made,
            pinned=pinned,
            nodes=nodes,
            attempt=current_run(),
            host=socket.gethostname(),
        )


def read_manifest(file: Path) -> tuple[Block, ...]:
    """Read the blocks on a tier from their manifest."""
    return tuple(Block(**row) for row in read_table(file, "bigbrain_blocks"))


def is_calibration(run: str) -> bool:
    """Whether a run only serves to learn costs and is not shown.

    >>> is_calibration("spark/tmpfs/2/0"), is_calibration("spark/tmpfs/2/10")
    (True, False)
    """
    return run.endswith(f"/{CALIBRATION}")


def tier_of(run: str) -> str:
    """The tier of a run."""
    return run.split("/")[1]


def parallelism_of(run: str) -> int:
    """How many blocks a run does at once."""
    return int(run.split("/")[2])
