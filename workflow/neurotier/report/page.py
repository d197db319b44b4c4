"""The run report: one HTML file that needs nothing else, with the verdict first.

Names and reasons come from datasets and tools, so the template escapes all of them; style, script and pictures
are inside the file, and a content policy forbids the browser to fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import yaml

from neurotier.analysis.app import app_name
from neurotier.files import write_text
from neurotier.report import quantities
from neurotier.report.data import Record, ReportData, collect
from neurotier.report.figures import FIGURES
from neurotier.report.findings import (
    PHASES,
    account_finding,
    brain_volume_finding,
    cpu_io_finding,
    gantt_finding,
    participant_times,
    present_phases,
)
from neurotier.report.mosaics import mosaic_name, placeholder_reason
from neurotier.report.verdict import judge, tiles
from neurotier.report.where import where_view
from neurotier.tables import Row
from neurotier.tiers import Mount

__all__ = ["ReportData", "collect", "write_page"]

HERE = Path(__file__).resolve().parent
SHOWN_ROWS = 50
"""Longest table on the page; the rest is in the files it links to."""

READINGS = {
    "account": "Wall time of each participant job by cause, slowest first, and below it the sums by phase.",
    "cpu_io": "CPU and I/O time of each participant job, slowest first, and below it their sums by phase.",
    "gantt": "How many participant jobs ran at each moment of the last run, and below it their phases on one clock.",
    "brain_volume": "One dot per image; rings mark outliers.",
}
FIGURE_HEADINGS = {
    "account": "Where the time went",
    "cpu_io": "CPU and I/O time per participant",
    "gantt": "Participant jobs of the last run",
    "brain_volume": "Brain volumes",
}

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
class FigureView:
    """One figure on the page.

    Attributes
    ----------
    name, heading, reading
        What it is and how to read it.
    sentence
        The finding, which is its title too: here the alternative text.
    picture
        Data address, empty if the figure was not drawn.
    files
        Kind and address of the files beside the page.
    """

    name: str
    heading: str
    reading: str
    sentence: str
    picture: str
    files: list[tuple[str, str]]


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
        What :func:`collect` read.
    path
        HTML file to write; its links are relative to its folder.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("seconds", "clock", "percent", "share_of", "size", "cm3", "number", "counted", "utc", "mean_count"):
        environment.filters[name] = getattr(quantities, name)
    environment.filters["glue"] = glue
    write_text(path, environment.get_template("template.html.j2").render(context(data, path.parent)))


def context(data: ReportData, folder: Path) -> dict[str, Any]:
    """What the template is given."""
    times = participant_times(data.profile)
    facts = complete("facts", data.facts)
    failures = [complete("failure", each) for each in data.failures if str(each["participant"]) in data.failed]
    script = (HERE / "page.js").read_text()
    mosaics, drawn = choose_mosaics(data, folder)
    return {
        "data": data,
        "title": title_of(data),
        "several_runs": len({time.run for time in times}) > 1,
        "style": (HERE / "page.css").read_text(),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "verdict": judge(data),
        "tiles": tiles(data, times),
        "failures": [{**failure, "log_link": log_link(data, failure, folder)} for failure in failures],
        "not_run": sorted(data.not_run),
        "figures": [figure_view(data, name, folder) for name in FIGURES],
        "outliers": outliers(data),
        "mosaics": mosaics,
        "mosaics_drawn": drawn,
        "times": times,
        "where": where_view(data, times),
        "phases": [phase for phase in PHASES if phase in present_phases(times)],
        "analysis": app_name(data.settings),
        "container": complete("container", data.container) if data.container else None,
        "is_app": data.settings.app.image is not None,
        "dataset": complete("dataset", data.dataset),
        "summary": complete("summary", data.summary),
        "sites": site_views(data.dataset.get("sites")),
        "facts": facts,
        "command": command_text(facts["command_line"]),
        "tiers": tier_views(facts["tiers"] or {}),
        "configuration": yaml.safe_dump(facts["settings"], sort_keys=False) if facts["settings"] else "",
        "runs": list(reversed(data.runs)),
        "shown_rows": SHOWN_ROWS,
        "files": {
            name: link(data.results / name, folder)
            for name in (
                *("profile/profile.tsv", "profile/traffic.tsv", "profile/runs.tsv", "profile/steps.tsv"),
                *("group/group.tsv", "index/images.tsv", "index/skipped.tsv", "figures/mosaics", "state/failures"),
            )
        },
    }


def complete(kind: str, record: Record) -> Record:
    """A record with every key the template asks for, ``None`` where it has none."""
    return {**dict.fromkeys(RECORD_KEYS[kind]), **record}


def title_of(data: ReportData) -> str:
    """The dataset's name by its description, else its source."""
    description = data.dataset.get("description")
    name = description.get("Name") if isinstance(description, dict) else None
    return str(name or data.settings.dataset.source)


def glue(text: str) -> str:
    """Keep numbers and their units on one line, by no-break spaces.

    >>> glue("took 31.2 s of 5 participants")
    'took 31.2\\xa0s of 5 participants'
    """
    return re.sub(r"(?<=\d) (?=(?:s|%|h|min|cm³|mm³)(?![A-Za-z]))", "\u00a0", text)


def link(path: Path, folder: Path) -> str:
    """Address of an existing file or folder relative to the page; empty if it is not there."""
    return quote(os.path.relpath(path, folder)) if path.exists() else ""


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
    return shlex.join(map(str, command)) if isinstance(command, list) else str(command or quantities.MISSING)


def embedded(path: Path) -> str:
    """A picture as a data address; empty if it is not there."""
    kind = {".svg": "image/svg+xml", ".png": "image/png"}[path.suffix]
    try:
        return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    except FileNotFoundError:
        return ""


def figure_view(data: ReportData, name: str, folder: Path) -> FigureView:
    """A figure with its finding and its files."""
    sentence = {
        "account": lambda: account_finding(participant_times(data.profile)),
        "cpu_io": lambda: cpu_io_finding(participant_times(data.profile)),
        "gantt": lambda: gantt_finding(data.last_run),
        "brain_volume": lambda: brain_volume_finding(data.group),
    }[name]()
    paths = {kind: data.figures / f"{name}.{kind.lower()}" for kind in ("SVG", "PNG", "TSV")}
    files = [(kind, address) for kind, path in paths.items() if (address := link(path, folder))]
    return FigureView(name, FIGURE_HEADINGS[name], READINGS[name], f"{sentence}.", embedded(paths["SVG"]), files)


def outliers(data: ReportData) -> list[Row]:
    """Images whose brain volume stands out, the farthest from the median first."""
    return sorted((row for row in data.group if row["outlier"]), key=lambda row: -abs(row["robust_z"] or 0.0))


def choose_mosaics(data: ReportData, folder: Path) -> tuple[list[MosaicView], int]:
    """The mosaics to embed, outliers first, then images spread evenly over the dataset; and how many there are."""
    paths = {row["image"]: data.mosaics / mosaic_name(row["image"]) for row in data.group}
    drawn = [row for row in data.group if paths[row["image"]].is_file()]
    first = [row for row in outliers(data) if row in drawn][: data.settings.report.mosaics]
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
