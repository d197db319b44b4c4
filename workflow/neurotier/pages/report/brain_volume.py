"""The figure ``brain_volume``: one dot per image, by site, with median and quartiles; outliers ringed.

Of more than 200 participants, the dots are pixels, and only the outliers that have a number say which image they are.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from neurotier.core.quantities import CM3_PER_MM3, cm3, counted, number, shorten
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.style import (
    BLACK,
    BLUE,
    DRAWN_SINGLY,
    OUTLIER_COLOUR,
    READABLE_LANES,
    WIDTH_IN,
    write_figure,
)
from neurotier.pages.report.data import Tables

LANE_IN = 0.34
NAMED_OUTLIERS = 20
CROWDED = 600
"""With more dots in a lane, they are small and pale."""
GOLDEN = 0.6180339887
"""Multiples of it, modulo 1, spread evenly however many there are: a jitter that repeats."""


def finding(tables: Tables) -> Finding:
    """Mean and spread of the brain volumes, and how many stand out."""
    volumes = [float(row["brain_volume_mm3"]) for row in tables.group]
    if not volumes:
        return Finding("no brain mask was made", shown=False)
    if len(volumes) == 1:
        return Finding(f"Brain volume of the one image is {cm3(volumes[0])}")
    outliers = sum(bool(row["outlier"]) for row in tables.group)
    stand_out = (
        "none stands out" if not outliers else f"{number(outliers)} {'stands' if outliers == 1 else 'stand'} out"
    )
    spread = f"{number(statistics.fmean(volumes) * CM3_PER_MM3)} ± {cm3(statistics.stdev(volumes))}"
    return Finding(f"Brain volume is {spread} (mean ± SD of {counted(len(volumes), 'image')}); {stand_out}")


def draw(tables: Tables, stem: Path) -> None:
    """Draw the brain volume of every image; write SVG, PNG and TSV."""
    write_figure(stem, finding(tables), table(tables.group), lambda: figure_of(tables.group))


def figure_of(group: Sequence[Row]) -> plot.Figure:
    """The figure of at least one image."""
    sites = by_site(group)
    lane_in = max(LANE_IN, 1.2 / len(sites))
    outliers = numbered_outliers(group)
    key = outlier_key(group, outliers)
    very_many = len({row["participant"] for row in group}) > DRAWN_SINGLY
    height = lane_in * len(sites) + 1.5 + 0.16 * len(key)
    figure = plot.Figure(figsize=(WIDTH_IN, height))
    axes = figure.subplots()
    for lane, rows in enumerate(sites.values()):
        draw_site(axes, lane, rows, outliers, very_many)
    axes.set_yticks(range(len(sites)), [f"{shorten(site, 36)} ({len(rows):,})" for site, rows in sites.items()])
    axes.set_ylim(len(sites) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.04)
    axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    axes.set_xlabel("Brain volume (cm³)" + ("; line: median, box: middle half" if len(group) >= 5 else ""))
    if key:
        figure.supxlabel("\n".join(key), x=0.012, ha="left", fontsize=8, linespacing=1.35)
    return figure


def by_site(group: Sequence[Row]) -> dict[str, list[Row]]:
    """The images of each site in the order of names; all in one lane if there are more sites than fit."""
    sites: dict[str, list[Row]] = {}
    for row in group:
        sites.setdefault(row["site"] or "", []).append(row)
    if len(sites) > READABLE_LANES:
        return {f"all {len(sites)} sites": list(group)}
    return {name or "all images": sites[name] for name in sorted(sites)}


def draw_site(axes: plot.Axes, lane: int, rows: Sequence[Row], outliers: dict[str, int], very_many: bool) -> None:
    """One lane: quartile box, dots, and numbered rings; of very many images, dots and other rings are pixels."""
    volumes = np.array([row["brain_volume_mm3"] for row in rows]) * CM3_PER_MM3
    spread = 0.56 * ((np.arange(len(rows)) * GOLDEN + 0.5) % 1 - 0.5) if len(rows) > 1 else np.zeros(1)
    if len(rows) >= 5:
        lower, median, upper = np.percentile(volumes, [25, 50, 75])
        (box,) = axes.barh(lane, upper - lower, left=lower, height=0.78, color=BLUE, alpha=0.16, linewidth=0)
        box.set_url(hover(f"Median {median:,.0f} cm³, middle half {lower:,.0f} to {upper:,.0f} cm³"))
        axes.vlines(median, lane - 0.39, lane + 0.39, color=BLACK, linewidth=1.4)
    size, alpha = 9 if len(rows) > 20 else 18, 0.7
    if very_many and len(rows) > CROWDED:  # denser is darker, and the box stays visible
        size, alpha = 4, max(0.06, alpha * CROWDED / len(rows))
    dots = axes.scatter(volumes, lane + spread, s=size, color=BLUE, alpha=alpha, linewidths=0)
    dots.set_rasterized(very_many)
    if not very_many:
        dots.set_urls(said_by(rows))
    ring: Any = {"s": 70, "facecolors": "none", "edgecolors": OUTLIER_COLOUR, "linewidths": 1.4}
    unnamed = [place for place, row in enumerate(rows) if row["outlier"] and row["image"] not in outliers]
    if very_many and unnamed:
        smaller = {**ring, "s": 25, "linewidths": 0.7}
        axes.scatter(volumes[unnamed], lane + spread[unnamed], rasterized=True, **smaller)
    for row, volume, offset in zip(rows, volumes, spread, strict=True):
        if not row["outlier"] or (very_many and row["image"] not in outliers):
            continue
        around = axes.scatter(volume, lane + offset, **ring)
        if very_many:
            around.set_urls(said_by([row]))
        if row["image"] in outliers:
            at = (volume, lane + offset)
            text = str(outliers[row["image"]])
            axes.annotate(text, at, (6, 0), textcoords="offset points", va="center", fontsize=8, color=OUTLIER_COLOUR)


def said_by(rows: Sequence[Row]) -> list[str]:
    """What dots say under the pointer; twice, because matplotlib drops the address of a marker that stands alone."""
    return [hover(f"{row['image']}: {cm3(row['brain_volume_mm3'])}") for row in rows] * 2


def numbered_outliers(group: Sequence[Row]) -> dict[str, int]:
    """Image to number, from 1, of the outliers that are named; the farthest from the median first."""
    outliers = sorted((row for row in group if row["outlier"]), key=lambda row: -abs(row["robust_z"] or 0.0))
    return {row["image"]: place for place, row in enumerate(outliers[:NAMED_OUTLIERS], 1)}


def outlier_key(group: Sequence[Row], outliers: dict[str, int]) -> list[str]:
    """Lines that say which image each ring's number is."""
    rows = {row["image"]: row for row in group}
    lines = []
    for image, place in outliers.items():
        row = rows[image]
        name = PurePosixPath(image).name.removesuffix(".gz").removesuffix(".nii").removesuffix("_T1w")
        where = f"{row['site']}/{name}" if row["site"] else name
        lines.append(f"{place}  {shorten(where, 70)}: {cm3(row['brain_volume_mm3'])}, robust z {row['robust_z']:+.1f}")
    more = sum(bool(row["outlier"]) for row in group) - len(outliers)
    return [*lines, f"and {counted(more, 'more outlier')}, see the TSV"] if more else lines


def table(group: Sequence[Row]) -> Iterator[Row]:
    """The numbers behind the figure: one row per image."""
    for row in group:
        yield {
            "site": row["site"],
            "image": row["image"],
            "brain_volume_cm3": row["brain_volume_mm3"] * CM3_PER_MM3,
            "robust_z": row["robust_z"],
            "outlier": row["outlier"],
        }
