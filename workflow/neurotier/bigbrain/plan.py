"""What the rules of the incrementation ask when Snakemake builds its graph of jobs."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from neurotier.bigbrain.tasks import SNAKEMAKE, Block, Task
from neurotier.errors import SettingsError
from neurotier.places import Places, short_hash
from neurotier.settings import Settings
from neurotier.tables import read_table
from neurotier.tiers import Tier

ENGINE_NAMES = (SNAKEMAKE, "gnu-parallel", "spark")
BLOCK_KEYS = ("source", "resolution_um", "count", "scale", "seed", "split")
INCREMENT_KEYS = ("iterations", "delay_s", "pairing", "fsync", "keep")


class BigBrainPlan:
    """Answers for the rules' input functions, resources and parameters."""

    def __init__(self, settings: Settings, places: Places) -> None:
        self.settings, self.places = settings, places

    @property
    def tiers(self) -> list[str]:
        """Names of the tiers that are read and written."""
        return self.settings.bigbrain.tiers or [self.settings.placement["work"]]

    @cached_property
    def runs(self) -> list[str]:
        """All runs in their order, ``ENGINE/TIER/PARALLELISM/REPETITION``.

        Repetitions are the outermost, so that what drifts with time on the machine does so for all conditions.
        """
        asked = self.settings.bigbrain
        repetitions = range(1, asked.repetitions + 1)
        every = itertools.product(repetitions, self.tiers, asked.parallelism, asked.engines)
        return [f"{engine}/{tier}/{parallelism}/{repetition}" for repetition, tier, parallelism, engine in every]

    @property
    def shares(self) -> int:
        """How much there is of the resource that jobs of the engine ``snakemake`` share."""
        return math.lcm(*self.settings.bigbrain.parallelism)

    def share(self, run: str) -> int:
        """How much of it a job takes."""
        return self.shares // int(run.split("/")[2])

    @cached_property
    def names(self) -> list[str]:
        """Names of all blocks."""
        from neurotier.bigbrain.sources import source_of  # no other target needs what it loads

        return source_of(self.settings.bigbrain).names()

    def asked_blocks(self, _wildcards: object) -> dict[str, Any]:
        """What makes the blocks: when it changes, they are made again."""
        asked = asdict(self.settings.bigbrain)
        source = Path(self.settings.bigbrain.source).expanduser()
        files = sorted(source.glob("*.nii")) if source.is_dir() else [source] if source.is_file() else []
        versions = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
        return {key: asked[key] for key in BLOCK_KEYS} | {"files": short_hash("\n".join(versions))}

    def asked_increment(self, _wildcards: object) -> dict[str, Any]:
        """What is done with them: when it changes, it is done again."""
        asked = asdict(self.settings.bigbrain)
        return {key: asked[key] for key in INCREMENT_KEYS}

    @property
    def published(self) -> list[Path]:
        """Tables of the published experiment that the report is made of, too; none unless the configuration has it."""
        names = ("published_runs", "published_phases", "published_predictions") if self.settings.published else ()
        return [self.places.published / f"{name}.tsv" for name in names]

    def before(self, run: str) -> list[Path]:
        """What a run waits for: the end of the run before it."""
        at = self.runs.index(run) if run in self.runs else 0
        return [self.places.bigbrain_run(self.runs[at - 1]) / "checked.json"] if at else []

    def record(self, run: str, block: str, iteration: int) -> Path:
        """What a job of the engine ``snakemake`` leaves."""
        return self.places.bigbrain_run(run) / "records" / f"{block}_{iteration}.json"

    def iteration_before(self, run: str, block: str, iteration: str) -> list[Path]:
        """What such a job waits for: the record of the iteration whose block it reads."""
        return [self.record(run, block, int(iteration) - 1)] if int(iteration) > 1 else []

    def done(self, run: str) -> list[Path]:
        """What the check of a run waits for."""
        if run.split("/")[0] != SNAKEMAKE:
            return [self.places.bigbrain_run(run) / "finished.json"]
        return [self.record(run, name, self.settings.bigbrain.iterations) for name in self.names]

    def tier(self, name: str) -> Tier:
        """A tier that is read and written.

        Raises
        ------
        SettingsError
            If each node has its own: a block is not read on the node that wrote it.
        TierError
            If it is not there, not writable, or not what it was declared to be.
        """
        tier = Tier.from_settings(self.settings.tiers[name])
        if tier.node:
            what = f"tier {name!r} is each node's own (node: true), and all jobs must see the same blocks"
            raise SettingsError(what, "config key bigbrain.tiers", "name a tier that all nodes share")
        tier.check()
        return tier

    def folder(self, tier: Tier) -> Path:
        """Where the blocks of these results are on a tier."""
        return tier.folder("bigbrain") / short_hash(str(self.places.results))

    def task(self, run: str) -> Task:
        """A run with all that its workers must know."""
        _, name, _, _ = run.split("/")
        asked = self.settings.bigbrain
        rows = read_table(self.places.bigbrain_blocks(name), "bigbrain_blocks")
        return Task(
            run=run,
            tier=name,
            folder=str(self.folder(self.tier(name)) / "runs" / run),
            records=str(self.places.bigbrain_run(run) / "records"),
            iterations=asked.iterations,
            delay_s=asked.delay_s,
            pairing=asked.pairing,
            fsync=asked.fsync,
            keep=asked.keep,
            blocks=tuple(Block(**row) for row in rows),
        )
