"""Answers for the rules of the incrementation while Snakemake builds its graph of jobs."""

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
"""Read a plan as it is now: thousands of jobs ask for the same one, and it may be rewritten in between."""

FINISHED, CHECKED = "finished.json", "checked.json"
"""What a run's engine, and the check of its output, leave next to its plan."""

CALIBRATION = 0
"""Repetition of a short run on small blocks that shows what an engine costs; it is in no table of runs."""

CALIBRATIONS = "calibration"
"""Folder of the blocks of all calibrations, below that of the blocks of these results."""

CALIBRATION_SCALE = 0.2
"""Of the published shape: 5 MB a block, so that starts are much of the time, and incrementing is there to be timed."""

CALIBRATION_BLOCKS = 6
"""At least; and two for each that run at once, so that the gap between two is seen."""


class BigBrainPlan:
    """Answers for the rules' input functions, resources and parameters."""

    def __init__(self, settings: Settings, places: Places, node_class: str = "") -> None:
        self.settings, self.places, self.node_class, self.asked = settings, places, node_class, settings.bigbrain

    @property
    def tiers(self) -> list[str]:
        """Names of the tiers that are read and written."""
        return self.asked.tiers or [self.settings.placement["work"]]

    @cached_property
    def runs(self) -> list[str]:
        """All runs in their order, ``ENGINE/TIER/PARALLELISM/REPETITION``.

        Repetitions are the outermost, so that what drifts with time on the machine does so for all conditions.
        """
        repetitions = range(1, self.asked.repetitions + 1)
        every = itertools.product(repetitions, self.tiers, self.asked.parallelism, self.asked.engines)
        return [f"{engine}/{tier}/{parallelism}/{repetition}" for repetition, tier, parallelism, engine in every]

    @cached_property
    def calibrations(self) -> list[str]:
        """Short runs on small blocks, on the first tier, for each engine and parallelism; none without predictions."""
        every = itertools.product(self.asked.parallelism, self.asked.engines) if self.asked.predict else ()
        return [f"{engine}/{self.tiers[0]}/{parallelism}/{CALIBRATION}" for parallelism, engine in every]

    @property
    def order(self) -> list[str]:
        """Everything that is run, one after the other."""
        return [*self.runs, *self.calibrations]  # those last: they have no effect on the runs

    @property
    def shares(self) -> int:
        """How much there is of the resource that jobs of the engine ``snakemake`` share."""
        return math.lcm(*self.asked.parallelism)

    def share(self, run: str) -> int:
        """How much of it a job takes."""
        return self.shares // parallelism_of(run)

    def asked_for(self, run: str) -> BigBrainSettings:
        """What a run does: what the configuration asks for, or, as a calibration, small blocks once and nothing else.

        A calibration tells what is spent besides reading: where that is within incrementing, it must cost little.
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
        """What the blocks of a run are made from."""
        from neurotier.bigbrain.blocks.sources import source_of  # no other target needs what it loads

        return source_of(self.asked_for(run))

    @cached_property
    def names(self) -> Callable[[str], list[str]]:
        """Names of the blocks of a run, looked up once for each: Snakemake asks for every job."""
        return cache(lambda run: self.source(run).names())

    def asked_blocks(self, wildcards: Any) -> Record:
        """What determines the blocks on a tier: if it changes, they are made again."""
        from neurotier.bigbrain.blocks.sources import versions_of  # as above

        tier = tier_named(self.settings, wildcards.tier)
        about = {"files": short_hash("\n".join(versions_of(self.asked))), "path": str(tier.path), "kind": tier.kind}
        return {key: getattr(self.asked, key) for key in BLOCK_KEYS} | about

    def asked_increment(self, wildcards: Any) -> Record:
        """What is done with them: if it changes, it is done again."""
        keys = CALIBRATION_KEYS if is_calibration(wildcards.run) else INCREMENT_KEYS
        more = SPARK_KEYS if wildcards.run.startswith(f"{SPARK}/") else ()
        return {key: getattr(self.asked, key) for key in (*keys, *more)}

    def asked_of_node(self, configuration: Record) -> Record:
        """The part of the given configuration that says what a node of a cluster is to do."""
        results_tier = self.settings.placement["results"]
        return {
            "probe": without(configuration.get("probe") or {}, "tiers"),
            "bigbrain": {**(configuration.get("bigbrain") or {}), "tiers": self.tiers},
            "tiers": {name: dict(configuration["tiers"][name]) for name in dict.fromkeys([*self.tiers, results_tier])},
            "placement": dict.fromkeys(ROLES, results_tier),
        }

    def manifests(self) -> list[Path]:
        """Manifests of the blocks on all tiers."""
        return [self.places.bigbrain_blocks(tier) for tier in self.tiers]

    @property
    def published(self) -> dict[str, Path]:
        """Tables of the published experiment for the report; none unless the configuration includes it."""
        names = ("published_runs", "published_phases", "published_predictions") if self.settings.published else ()
        return {name: self.places.published / f"{name}.tsv" for name in names}

    def before(self, run: str) -> list[Path]:
        """What a run waits for: the end of the run before it."""
        before = dict(zip(self.order[1:], self.order, strict=False)).get(run)
        return [self.checked(before)] if before else []

    def checked(self, run: str) -> Path:
        """What the check of a run leaves."""
        return self.places.bigbrain_run(run) / CHECKED

    def needed_bytes(self, source: Source) -> int:
        """Room on a tier for blocks as large as the first one, and for what one run makes of them: the input of an
        iteration stays until the next one is complete."""
        names, iterations = source.names(), self.asked.iterations
        kept = iterations if self.asked.keep == ALL else min(iterations, 2)
        return len(names) * source.block(names[0])[0].file_bytes * (1 + kept)

    def record(self, run: str, block: str, iteration: int) -> Path:
        """What a job of the engine ``snakemake`` leaves."""
        return self.places.bigbrain_run(run) / "records" / f"{block}_{iteration}.json"

    def iteration_before(self, run: str, block: str, iteration: str) -> list[Path]:
        """What such a job waits for: the record of the iteration whose block it reads."""
        return [self.record(run, block, int(iteration) - 1)] if int(iteration) > 1 else []

    def prefix(self, plan: Path | str, block: str) -> str:
        """What stands before the command of such a job; its run's plan has decided it."""
        if self.asked.numa == NONE:
            return ""
        task = load_task(Path(plan))
        return "".join(f"{word} " for word in prefix(node_of(task, block)))

    def done(self, run: str) -> list[Path]:
        """What the check of a run waits for."""
        if not run.startswith(f"{SNAKEMAKE}/"):
            return [self.places.bigbrain_run(run) / FINISHED]
        return [self.record(run, name, self.asked_for(run).iterations) for name in self.names(run)]

    def probes(self) -> list[Path]:
        """Probes of the tiers, on which predictions rest; none if nothing is predicted."""
        return [self.places.probed(tier, self.node_class) for tier in self.tiers] if self.asked.predict else []

    def tier(self, name: str) -> Tier:
        """A tier that is read and written.

        Raises
        ------
        SettingsError
            If each node has its own: a block is not read on the node that wrote it.
        TierError
            If it is not there, not writable, or not what it was declared to be.
        """
        tier = tier_named(self.settings, name)
        if tier.node:
            problem = f"tier {name!r} is each node's own (node: true), and all jobs must see the same blocks"
            raise SettingsError(problem, "config key bigbrain.tiers", "name a tier that all nodes share")
        tier.check()
        return tier

    def folder(self, tier: str) -> Path:
        """Where the blocks of these results are on a tier."""
        return self.tier(tier).folder("bigbrain") / short_hash(str(self.places.results))

    def blocks_folder(self, run: str) -> Path:
        """Where the blocks are that a run reads."""
        folder = self.folder(tier_of(run))
        return folder / CALIBRATIONS / run.replace("/", "_") if is_calibration(run) else folder / "blocks"

    def task(self, run: str) -> Task:
        """A run that begins, with all that its workers must know; the blocks of a calibration are made then."""
        asked, (pinned, nodes) = self.asked_for(run), pinning(self.asked.numa)
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
    """The blocks on a tier."""
    return tuple(Block(**row) for row in read_table(file, "bigbrain_blocks"))


def is_calibration(run: str) -> bool:
    """Whether a run only serves to learn costs, and is not shown.

    >>> is_calibration("spark/tmpfs/2/0"), is_calibration("spark/tmpfs/2/10")
    (True, False)
    """
    return run.endswith(f"/{CALIBRATION}")


def tier_of(run: str) -> str:
    """The tier of a run."""
    return run.split("/")[1]


def parallelism_of(run: str) -> int:
    """How many blocks at once a run asks for."""
    return int(run.split("/")[2])
