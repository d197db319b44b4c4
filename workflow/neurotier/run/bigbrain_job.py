"""The BigBrain incrementation as one job of a cluster: a Snakemake on the node makes blocks, runs and checks, as on one
machine.

That Snakemake has a results folder of its own (``bigbrain/node``) and stays on one node: blocks on a node's own tier
cannot be read on another node, and a slow node must not look like a slow engine. An interrupted run begins again, on
whichever node the next job gets; finished runs are not repeated, and their table names their hosts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from neurotier.bigbrain.blocks.sources import versions_of
from neurotier.bigbrain.plan import BLOCK_KEYS, INCREMENT_KEYS, SPARK_KEYS, BigBrainPlan
from neurotier.core.errors import RunError
from neurotier.core.files import Facts, read_intact_json, remove_tree, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier
from neurotier.run.campaign import ALONE, inner_settings, last_message, snakemake

FOLDER = "node"


def run_here(asked: Facts, settings: Settings, places: Places, log: Path) -> Places:
    """Do all missing runs on this machine; returns the places of their results.

    Parameters
    ----------
    asked
        What :meth:`neurotier.bigbrain.plan.BigBrainPlan.node_configuration` gave.
    settings, places
        Of the outer run, which submitted this job.
    log
        File for what Snakemake prints.

    Raises
    ------
    TierError
        If a tier is missing on this node, or not what it is declared to be.
    RunError
        If the runs did not finish.
    """
    file, results = log.with_name("configuration.yaml"), Path(settings.results, places.bigbrain.name, FOLDER)
    inner = inner_settings(asked, settings, results, file)
    plan = BigBrainPlan(inner, inner_places := Places.from_settings(inner))
    for tier in inner.tiers.values():
        Tier.from_settings(tier).check()
    forget_others(settings, plan)
    forget_interrupted(plan)
    write_text(log, "")
    cores = max(len(os.sched_getaffinity(0)), *inner.bigbrain.parallelism)
    # A tier's path may contain the job's number; finished runs must not be repeated because of that.
    again = ["--rerun-triggers", "mtime", "--rerun-incomplete"]
    last = inner_places.shortened().bigbrain / "bigbrain_predictions.tsv"
    if snakemake([last, *ALONE, *again, "--cores", cores, "--configfile", file], log) != 0:
        problem = last_message(log) or "its runs did not finish"
        raise RunError(problem, "target bigbrain", f"see {log}, and start the same command again")
    return inner_places


def forget_others(settings: Settings, plan: BigBrainPlan) -> None:
    """Remove runs of another configuration: of other blocks, or with other settings of the incrementation.

    A configuration does not count as another if it only adds engines, tiers, processes or repetitions.
    """
    wanted = {key: getattr(settings.bigbrain, key) for key in (*BLOCK_KEYS, *INCREMENT_KEYS, *SPARK_KEYS)}
    wanted["versions"] = versions_of(settings.bigbrain)
    wanted |= {f"tier {name}": vars(settings.tiers[name]) for name in plan.tiers}
    file = plan.places.results.with_name(f"{FOLDER}.json")
    before = read_intact_json(file)
    if not before or any(before.get(key, value) != value for key, value in wanted.items()):
        remove_tree(plan.places.results)
        before = {}
    write_json(file, before | wanted)  # runs on a tier that is not used now are kept, and so is its path


def forget_interrupted(plan: BigBrainPlan) -> None:
    """Remove runs that began and did not finish: their blocks may be on another node."""
    for run in plan.order:
        if not plan.checked(run).exists():
            remove_tree(plan.places.bigbrain_run(run))


def take_over(inner: Places, tables: Sequence[Path]) -> None:
    """Copy tables of the runs, with their sidecars, to where the tables of a run on this machine would be."""
    for table in tables:
        for file in (table.with_suffix(".json"), table):
            write_text(file, (inner.bigbrain / file.name).read_text())
