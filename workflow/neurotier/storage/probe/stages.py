"""Stages of a probe: what the scripts of its rules do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from neurotier.core.errors import ToolError
from neurotier.core.places import Places, short_hash
from neurotier.core.private import names_in, remove_empty
from neurotier.core.quantities import counted, seconds, size
from neurotier.core.tables import Row, read_table, write_table
from neurotier.core.tiers import Tier
from neurotier.core.work_folders import owner_lives, read_owner, sweep_folder, work_folder
from neurotier.run.scripting import Context
from neurotier.storage.fio import INSTALL
from neurotier.storage.probe.effort import effort_for
from neurotier.storage.probe.table import probe_rows
from neurotier.storage.probe.walk import Walk


def probe_tier(context: Context) -> None:
    """Measure one tier on this node, and write its table."""
    snakemake, places = context.snakemake, context.places
    if shutil.which("fio") is None:
        raise ToolError("fio is not on PATH", where="tier probe", fix=INSTALL)
    tier = Tier.from_settings(context.settings.tiers[snakemake.wildcards.tier]).here()
    tier.claim()
    folder = tier.folder("probe") / short_hash(str(places.results))
    sweep_forsaken(folder.parent)
    try:
        with work_folder(folder, places.identity):
            effort = effort_for(tier, context.settings.probe, snakemake.params.asked["streams"])
            what = f"up to {counted(effort.streams, 'stream')}, at most {size(effort.room_bytes)}"
            context.say(f"Probing tier {tier.name} ({tier.path}): {what}, within {seconds(effort.time_s)}")
            samples = Walk(tier, effort, folder).run()
    finally:
        remove_empty(folder.parent)
    rows = probe_rows(tier, samples)
    least, asked = min(row["repetitions"] for row in rows), effort.repetitions
    if least < asked:
        context.say(f"  {least} of {counted(asked, 'repetition')} in that time; raise probe.time_s for more")
    write_table(Path(snakemake.output.table), "probe", rows)


def sweep_forsaken(probes: Path) -> None:
    """Remove what probes for any results have left here whose owner, of this host, is gone."""
    for name in names_in(probes):
        owner = read_owner(probes / name)
        if owner and not owner_lives(owner):
            sweep_folder(probes / name, identity="")  # those of other hosts stay


def tabulate_probe(tables: Sequence[str], path: Path) -> None:
    """Put the tables of all tiers into one."""
    rows: list[Row] = [row for table in tables for row in read_table(Path(table), "probe")]
    write_table(path, "probe", rows)


def draw_probe(places: Places) -> None:
    """Write the figures of the probe, each as SVG, PNG and TSV."""
    from neurotier.pages.probe.figures import draw_all

    draw_all(read_table(places.probe / "probe.tsv", "probe"), places.probe_figures)


def write_probe(context: Context) -> None:
    """Write the page, and say what it says."""
    from neurotier.pages.probe.figures import findings
    from neurotier.pages.probe.page import write_probe as write

    places = context.places
    rows, page = read_table(places.probe / "probe.tsv", "probe"), places.results / "probe.html"
    write(rows, places.probe_figures, page)
    for finding in findings(rows).values():
        context.say(f"{finding}.")
    context.say(f"Report: {places.shortened(Path.cwd()).results / 'probe.html'}")
