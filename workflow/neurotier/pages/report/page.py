"""The run report: one HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), with the verdict first."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from neurotier.analysis.app import app_name
from neurotier.core import quantities
from neurotier.core.credentials import all_without_credentials, without_credentials
from neurotier.core.tables import Row
from neurotier.core.tiers import Mount
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import embedded, link, write_html
from neurotier.pages.kit.registry import Entry
from neurotier.pages.kit.style import SLOWEST_DRAWN
from neurotier.pages.report.cluster import cluster_lines
from neurotier.pages.report.data import Record, ReportData, Tables
from neurotier.pages.report.figures import FIGURES
from neurotier.pages.report.mosaics import mosaic_name, placeholder_reason
from neurotier.pages.report.prediction import prediction_view
from neurotier.pages.report.times import present_phases
from neurotier.pages.report.verdict import judge_results, judge_timings, tiles
from neurotier.pages.report.where import where_view
from neurotier.run.profile_tables import timings

HERE = Path(__file__).resolve().parent
SHOWN_ROWS = SLOWEST_DRAWN
"""Longest table on the page; the rest is in the files it links to."""

SHOWN_OPEN = 5
"""Longest list of what failed or was left out that is not folded."""

RECORD_KEYS = {
    "dataset": ("source", "path", "kind", "id", "version", "sites"),
    "facts": (
        *("run", "started_s", "command_line", "cores", "oversubscribed", "host", "kernel", "cpus"),
        *("memory_bytes", "swap_bytes", "versions", "tiers", "settings"),
    ),
    "container": ("reference", "name", "sha256", "size_bytes"),
    "failure": ("participant", "stage", "reason", "exit_code", "log"),
    "summary": (
        *("images", "participants", "mean_brain_volume_mm3", "sd_brain_volume_mm3"),
        *("mean_brain_voxels", "sd_brain_voxels"),
    ),
}
"""What the template asks of each record; an older or unfinished one may lack any of it."""


@dataclass(frozen=True)
class MosaicView:
    """One mosaic on the page."""

    image: str
    name: str
    picture: str
    link: str
    caption: str
    outlier: bool


def write_page(data: ReportData, path: Path) -> None:
    """Write the run report; equal data give equal bytes.

    Parameters
    ----------
    data
        What :func:`neurotier.pages.report.data.collect` read.
    path
        HTML file to write; its links are relative to its folder.
    """
    write_html(HERE / "report.html.j2", context(data, path.parent), path)


def context(data: ReportData, folder: Path) -> dict[str, Any]:
    """What the template is given."""
    tables = Tables(data.profile, data.runs, data.group, data.jobs)
    times = tables.times
    facts = complete("facts", data.facts)
    failures = [complete("failure", each) for each in data.failures if str(each["participant"]) in data.failed]
    mosaics, drawn = choose_mosaics(data, folder)
    return {
        "data": data,
        "title": title_of(data),
        "several_runs": len({time.run for time in times}) > 1,
        "verdicts": (judge_results(data), judge_timings(data)),
        "timings": timings,
        "tiles": tiles(data, times),
        "failures": failures,
        "failures_shown": [{**each, "log_link": log_link(data, each, folder)} for each in failures[:SHOWN_ROWS]],
        "not_run": sorted(data.not_run),
        "figures": figure_views("report", shown_figures(data), tables, data.figures, folder),
        "cluster": data.cluster,
        "cluster_lines": cluster_lines(data.cluster, data.settings, facts["tiers"] or {}) if data.cluster else [],
        "outliers": outliers(data),
        "mosaics": mosaics,
        "mosaics_drawn": drawn,
        "times": times,
        "where": where_view(data, times),
        "prediction": prediction_view(data.advice, data.last_run, times),
        "phases": present_phases(times),
        "analysis": app_name(data.settings),
        "container": complete("container", data.container) if data.container else None,
        "is_app": data.settings.app.image is not None,
        "dataset": complete("dataset", all_without_credentials(data.dataset)),
        "source": without_credentials(str(data.dataset.get("source") or data.settings.dataset.source)),
        "summary": complete("summary", data.summary),
        "sites": site_views(data.dataset.get("sites")),
        "facts": facts,
        "command": command_text(facts["command_line"]),
        "tiers": tier_views(facts["tiers"] or {}),
        "configuration": configuration_text(facts["settings"]),
        "runs": list(reversed(data.runs)),
        "has_problems": bool(failures or data.not_run or data.skipped or data.missing),
        "shown_open": SHOWN_OPEN,
        "shown_rows": SHOWN_ROWS,
        "files": {
            name: link(data.results / name, folder)
            for name in (
                *("profile/profile.tsv", "profile/traffic.tsv", "profile/runs.tsv", "profile/steps.tsv"),
                *(
                    "profile/jobs.tsv",
                    "advice/advice.tsv",
                    "group/group.tsv",
                    "index/images.tsv",
                    "index/skipped.tsv",
                    "figures/mosaics",
                    "state/failures",
                ),
            )
        },
    }


def shown_figures(data: ReportData) -> list[Entry]:
    """The figures of the page; one of nodes only if there were some."""
    return [entry for entry in FIGURES if entry.name != "nodes" or data.cluster is not None]


def complete(kind: str, record: Record) -> Record:
    """A record with every key the template asks for, ``None`` where it has none."""
    return {**dict.fromkeys(RECORD_KEYS[kind]), **record}


def title_of(data: ReportData) -> str:
    """The dataset's name by its description, else its source."""
    description = data.dataset.get("description")
    name = description.get("Name") if isinstance(description, dict) else None
    return str(name or without_credentials(data.settings.dataset.source))


def log_link(data: ReportData, failure: Record, folder: Path) -> str:
    """Address of the log of a failed participant, if it is there."""
    if not failure.get("log"):
        return ""
    # logs are named relative to where Snakemake was started, which is where its scripts run too
    return link(data.results / str(failure["log"]), folder) or link(Path(str(failure["log"])), folder)


def site_views(sites: Record | list[str] | None) -> list[str]:
    """Each site with the beginning of its version, where it has one of its own."""
    if not isinstance(sites, dict):
        return [str(site) for site in sites or []]
    versions = {
        site: str(facts.get("version") or "") if isinstance(facts, dict) else "" for site, facts in sites.items()
    }
    return [f"{site} ({version[:8]})" if version else site for site, version in versions.items()]


def command_text(command: Any) -> str:
    """A command line as a shell would read it."""
    text = shlex.join(map(str, command)) if isinstance(command, list) else str(command or quantities.MISSING)
    return without_credentials(text)


def configuration_text(settings: Record | None) -> str:
    """The configuration of a run; empty if it is not known."""
    return without_credentials(yaml.safe_dump(settings, sort_keys=False)) if settings else ""


def outliers(data: ReportData) -> list[Row]:
    """Images whose brain volume stands out, the farthest from the median first."""
    return sorted((row for row in data.group if row["outlier"]), key=lambda row: -abs(row["robust_z"] or 0.0))


def choose_mosaics(data: ReportData, folder: Path) -> tuple[list[MosaicView], int]:
    """The mosaics to embed, outliers first, then images spread evenly over the dataset; and how many there are."""
    paths = {row["image"]: data.mosaics / mosaic_name(row["image"]) for row in data.group}
    drawn = [row for row in data.group if paths[row["image"]].is_file()]
    first = [row for row in outliers(data) if paths[row["image"]].is_file()][: data.settings.report.mosaics]
    others = spread([row for row in drawn if not row["outlier"]], data.settings.report.mosaics - len(first))
    views = []
    for row in first + others:
        path = paths[row["image"]]
        caption = quantities.cm3(row["brain_volume_mm3"])
        if row["outlier"]:
            caption += f", outlier (robust z {row['robust_z']:+.1f})" if row["robust_z"] is not None else ", outlier"
        if reason := placeholder_reason(path):
            caption += f", no mosaic: {reason}"
        name = str(mosaic_name(row["image"]).with_suffix(""))
        views.append(MosaicView(row["image"], name, embedded(path), link(path, folder), caption, row["outlier"]))
    return views, len(drawn)


def spread(rows: list[Row], count: int) -> list[Row]:
    """``count`` rows at even distances.

    >>> spread([{"n": n} for n in range(10)], 2)
    [{'n': 2}, {'n': 7}]
    """
    if count >= len(rows):
        return rows
    return [rows[int((place + 0.5) * len(rows) / count)] for place in range(max(0, count))]


def tier_views(tiers: Record) -> list[Record]:
    """The facts of each role's tier, with the kind that its file system really is."""
    views = []
    for role, facts in tiers.items():
        keys = ("name", "path", "kind", "fs_type", "mount_point", "mount_options", "capacity_bytes", "free_bytes")
        view = {key: facts.get(key) for key in keys}
        mount = Mount(view["mount_point"] or "", view["fs_type"] or "", view["mount_options"] or "", "")
        views.append({**view, "role": role, "wrong_kind": bool(view["fs_type"]) and mount.kind != view["kind"]})
    return views
