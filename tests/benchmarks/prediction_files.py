"""The part ``files`` of the predictions: what is rehearsed, and the makespans that other terms for files would give."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bench import print_table
from neurotier.advice.situation import Situation
from neurotier.advice.table import advice_rows
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.model.this_machine import Probed
from neurotier.storage.probe.tier_figures import FileCost, TierFigures

DESCRIPTION = """\
about: a tool that makes small files and does little else
figures:
  files: {value: [[10000, 3500]], source: chosen}
  folders: {value: 40, source: chosen}
  removed_files: {value: 0, source: chosen}
  read_bytes: {value: 0, source: chosen}
  read_files: {value: 0, source: chosen}
  written_bytes: {value: 35000000, source: chosen}
  cpu_s: {value: 0.05, source: 'chosen: less than files take'}
  threads: {value: 1, source: chosen}
  memory_bytes: {value: 2000000, source: chosen}
  results: {value: [], source: chosen}
"""
LARGE = {"[[10000, 3500]]": "[[10, 6000000]]", "value: 40": "value: 4", "35000000": "60000000"}
"""What a tool that makes large files has in other places."""

TERMS: dict[str, Callable[[TierFigures], TierFigures]] = {
    "predicted": lambda figures: figures,
    "as if files took nothing": lambda figures: replace(figures, files={}),
    "by the time to make one, waited": lambda figures: replace(figures, files={1: FileCost(0.0, figures.make_s)}),
}
"""What the model knows of files; the last is what it did before it had a term for them."""

TITLE = "Small files: measured, and predicted as if others yielded, as they do to a group with more CPU weight (s)"


def print_terms(results: Path, measured_s: Mapping[tuple[str, int], float]) -> None:
    """Print measured makespans, by placement and number at once, beside those that each term gives."""
    known = [predicted_by(results, term) for term in TERMS]
    rows = [[*key, f"{value:.2f}", *(said[key] for said in known)] for key, value in measured_s.items()]
    print_table(TITLE, ["work on", "at once", "measured", *TERMS], rows)


def predicted_by(results: Path, term: str) -> dict[tuple[str, int], str]:
    """Makespans, s, that are predicted of the same calibration and probes with another term for files."""
    with contextlib.chdir(results.parents[1]):  # paths of settings are relative to the project
        settings = Settings.from_json(read_json(results / "state" / "settings.json"))
        places = Places.from_settings(settings)
        situation = Situation(settings, places)
        tables = [places.probed(tier, "") for tier in settings.placed_tiers]
        given = situation.inputs(tables, read_json(places.advice / "rehearsal.json"))
        probes = {
            name: Probed(*(TERMS[term](figures) for figures in (probe.usual, probe.low, probe.high)))
            for name, probe in given.probes.items()
        }
        given = replace(given, probes=probes, processors=replace(given.processors, others=0.0))
        rows = advice_rows(situation, given, settings.campaign.parallelism, {})
    return {
        (row["placement"], row["parallelism"]): f"{row['predicted_s']:.2f} ({row['low_s']:.2f} to {row['high_s']:.2f})"
        for row in rows
    }
