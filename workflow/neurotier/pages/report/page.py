"""The run report: one HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), with the verdict first."""

from __future__ import annotations

import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from neurotier.analysis.app import app_name
from neurotier.core import quantities
from neurotier.core.credentials import all_without_credentials, without_credentials
from neurotier.core.tables import Row
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import embedded, write_html
from neurotier.pages.kit.page import link
from neurotier.pages.report.cluster import cluster_lines
from neurotier.pages.report.data import Record, ReportData
from neurotier.pages.report.figures import FIGURES
from neurotier.pages.report.mosaics import mosaic_name, placeholder_reason
from neurotier.pages.report.prediction import prediction_view
from neurotier.pages.report.times import present_phases
from neurotier.pages.report.verdict import judge_results, judge_timings, tiles
from neurotier.pages.report.where import run_views, slow_views, tier_traffic
from neurotier.run.profile_tables import timings

TEMPLATE = Path(__file__).with_name("report.html.j2")

SHOWN_ROWS = 50
"""Longest table on the page; the rest is in the files it links to."""

SHOWN_OPEN = 5
"""Longest list of what failed or was left out that is not folded."""


def write_page(data: ReportData, path: Path) -> None:
    """Write the run report; equal data give equal bytes.

    Parameters
    ----------
    data
        What :func:`neurotier.pages.report.data.collect` read.
    path
        HTML file to write; its links are relative to its folder.
    """
    folder, times, facts = path.parent, data.times, complete(data.facts)
    shown = [entry for entry in FIGURES if entry.name != "nodes" or data.cluster]
    failures = [complete(failure) for failure in data.failures if str(failure["participant"]) in data.failed]
    outliers = [row for row in data.group if row["outlier"]]
    outliers.sort(key=lambda row: -abs(row["robust_z"] or 0.0))
    drawn = [row for row in data.group if mosaic_of(data, row).is_file()]
    sites = data.dataset.get("sites") or {}
    context = {
        "data": data,
        "title": title_of(data),
        "several_runs": len({time.run for time in times}) > 1,
        "verdicts": (judge_results(data), judge_timings(data)),
        "timings": timings,
        "tiles": tiles(data),
        "failures": failures,
        "log_link": lambda failure: link(Path(failure["log"]), folder) if failure["log"] else "",
        "not_run": sorted(data.not_run),
        "figures": figure_views("report", shown, data, data.places.figures, folder),
        "cluster_lines": cluster_lines(data.cluster) if data.cluster else [],
        "outliers": outliers,
        "mosaics": [mosaic_view(data, row, folder) for row in shown_mosaics(drawn, data.settings.report.mosaics)],
        "mosaics_drawn": len(drawn),
        "runs_answered": run_views(data),
        "slowest": slow_views(data),
        "traffic": tier_traffic(data),
        "prediction": prediction_view(data.advice, data.last_run, data.last_times),
        "phases": present_phases(times),
        "analysis": app_name(data.settings),
        "container": complete(data.container),
        "is_app": data.settings.app.image is not None,
        "dataset": complete(all_without_credentials(data.dataset)),
        "source": without_credentials(str(data.dataset.get("source") or data.settings.dataset.source)),
        "summary": complete(data.summary),
        "sites": [f"{site} ({str(about.get('version') or '')[:8]})" for site, about in sites.items()],
        "facts": facts,
        "command": without_credentials(shlex.join(facts["command_line"] or [quantities.MISSING])),
        "configuration": without_credentials(yaml.safe_dump(facts["settings"], sort_keys=False)),
        "has_problems": bool(failures or data.not_run or data.skipped or data.missing),
        "shown_open": SHOWN_OPEN,
        "shown_rows": SHOWN_ROWS,
        "linked": lambda name: link(data.places.results / name, folder),
    }
    write_html(TEMPLATE, context, path)


def complete(record: Record) -> Record:
    """A record that says ``None`` of what it lacks, as that of a run that was killed may."""
    return defaultdict(lambda: None, record)


def title_of(data: ReportData) -> str:
    """The dataset's name by its description, else its source."""
    description = data.dataset.get("description") or {}
    return str(description.get("Name") or without_credentials(data.settings.dataset.source))


def mosaic_of(data: ReportData, row: Row) -> Path:
    """Where the mosaic of an image is, once it has been drawn."""
    return data.places.mosaics / mosaic_name(row["image"])


def shown_mosaics(drawn: list[Row], count: int) -> list[Row]:
    """The images whose mosaics are embedded: outliers first, then others spread evenly over the dataset.

    >>> [row["n"] for row in shown_mosaics([{"n": n, "outlier": n == 3} for n in range(7)], 4)]
    [3, 0, 2, 5]
    """
    outliers, others = ([row for row in drawn if row["outlier"] is whether] for whether in (True, False))
    left = max(0, count - len(outliers))
    return outliers[:count] + [others[place * len(others) // left] for place in range(min(left, len(others)))]


def mosaic_view(data: ReportData, row: Row, folder: Path) -> dict[str, Any]:
    """A mosaic as the page shows it."""
    path, caption = mosaic_of(data, row), quantities.cm3(row["brain_volume_mm3"])
    if row["outlier"]:
        caption += f", outlier (robust z {row['robust_z']:+.1f})"
    if reason := placeholder_reason(path):
        caption += f", no mosaic: {reason}"
    name = mosaic_name(row["image"]).with_suffix("")
    return {**row, "name": name, "picture": embedded(path), "link": link(path, folder), "caption": caption}
