"""The figure ``brain_volume``: how brain volumes are distributed at each site; outliers ringed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from neurotier.core.quantities import CM3_PER_MM3, cm3, counted, number
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLUE, hover
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.spread import apart, draw_distribution
from neurotier.pages.kit.style import OUTLIER_COLOUR, write_figure
from neurotier.pages.report.data import Tables

NOTE = "Box: quartiles; line: 5th to 95th per cent; dots: images, if few; diamond: median; rings: outliers."


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
    write_figure(stem, finding(tables), table(tables.group), lambda: figure_of(tables.group), NOTE)


def figure_of(group: Sequence[Row]) -> plot.Figure:
    """The figure of at least one image: a lane of each site."""
    sites: dict[str, list[Row]] = {}
    for row in sorted(group, key=lambda row: row["site"] or ""):
        sites.setdefault(row["site"] or "all images", []).append(row)
    panel = Panel("", tuple(Lane(f"{site} ({len(rows):,})", rows) for site, rows in sites.items()))
    figure, (axes,) = panel_axes([panel])
    for lane, rows in panel.filled():
        volumes = [row["brain_volume_mm3"] * CM3_PER_MM3 for row in rows]
        median = statistics.median(volumes)
        said = [f"{row['image']}: {cm3(row['brain_volume_mm3'])}" for row in rows]
        draw_distribution(axes, lane, volumes, median, BLUE, said)
        annotate_lane(axes, lane, f"{median:,.0f} cm³")
        for row, volume, place, text in zip(rows, volumes, apart(lane, len(rows)), said, strict=True):
            if row["outlier"]:
                ring = axes.scatter(volume, place, s=70, facecolors="none", edgecolors=OUTLIER_COLOUR, linewidths=1.4)
                ring.set_urls([hover(text)] * 2)
    label_lanes(axes, panel)
    axes.margins(x=0.04)
    axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    axes.set_xlabel("Brain volume (cm³)")
    return figure


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
