"""What each member of the model predicts against what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.marks import MARKS, in_order
from neurotier.pages.bigbrain.names import off_factor, ratio_text
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import BLACK, GREY, LIGHT_GREY, WIDTH_IN, house_style, save_figure, set_title
from neurotier.pages.published.tables import Replayed

BAND = 0.15
"""Share of the measured makespan that a good prediction is within."""

NOTE = (
    "Line: predicted as measured; band: within 15 %. A marker per condition and member; vertical line: interval of the"
    " prediction; hollow: speeds were fitted to runs of this very condition. Factor: geometric mean of how far a member"
    " is off, either way, hollow ones and stalled repetitions left out."
)


def held_against(predictions: Sequence[Row]) -> list[Row]:
    """The predictions of conditions that were measured."""
    return [row for row in predictions if row["measured_s"] and row["predicted_s"] > 0]


def error_factors(predictions: Sequence[Row]) -> dict[str, float]:
    """Geometric mean of the factors by which each member is off where it was not fitted.

    >>> rows = [{"member": "paper", "predicted_s": 2.0 * off, "measured_s": 2.0} for off in (2.0, 0.5)]
    >>> error_factors([row | {"fitted_on": False} for row in rows])
    {'paper': 2.0}
    """
    ratios: dict[str, list[float]] = {}
    rows = [row for row in held_against(predictions) if not row["fitted_on"]]
    for row in rows:
        ratios.setdefault(row["member"], []).append(row["predicted_s"] / row["measured_s"])
    return {member: factor for member in in_order(ratios) if (factor := off_factor(ratios[member]))}


def parts(tables: Replayed) -> dict[str, Replayed]:
    """Itself if any condition that is predicted was measured."""
    return {"": tables} if held_against(tables.predicted) else {}


def finding(tables: Replayed) -> Finding:
    """By which factor each member is off, where it was not fitted."""
    counts = Counter(row["member"] for row in held_against(tables.predicted) if not row["fitted_on"])
    factors = [
        f"{member} {ratio_text(factor)} ({counted(counts[member], 'condition')})"
        for member, factor in error_factors(tables.predicted).items()
    ]
    return Finding(f"Predictions are off by these factors where nothing was fitted: {', '.join(factors)}")


def draw(tables: Replayed, stem: Path) -> None:
    """Draw predictions of which at least one was measured; write SVG, PNG and TSV."""
    rows = held_against(tables.predicted)
    with house_style():
        figure = draw_rows(rows)
        set_title(figure, finding(tables).sentence, NOTE)
        save_figure(figure, stem, rows)


def draw_rows(rows: Sequence[Row]) -> Figure:
    """The figure, both axes logarithmic and of one scale."""
    figure = Figure(figsize=(WIDTH_IN, 6.6))
    axes = figure.subplots()
    times = [row[name] for row in rows for name in ("predicted_s", "measured_s")]
    ends = [min(times) / 1.5, max(times) * 1.5]
    axes.fill_between(
        ends, [(1 - BAND) * end for end in ends], [(1 + BAND) * end for end in ends], color=LIGHT_GREY, linewidth=0
    )
    axes.plot(ends, ends, color=BLACK, linewidth=1)
    factors, handles = error_factors(rows), list[Line2D | Patch]()
    for member, factor in factors.items():
        mark = MARKS[member]
        mine = [row for row in rows if row["member"] == member]
        for row in mine:
            if row["low_s"] is not None and row["high_s"] is not None:
                axes.plot([row["measured_s"]] * 2, [row["low_s"], row["high_s"]], color=mark.colour, linewidth=0.8)
        measured, said = ([row[name] for row in mine] for name in ("measured_s", "predicted_s"))
        fill = [mark.colour if not row["fitted_on"] else "white" for row in mine]
        axes.scatter(measured, said, s=36, marker=mark.marker, c=fill, edgecolors=mark.colour, alpha=0.85, zorder=3)
        handle = mark.handle()
        handle.set_label(f"{mark.label}: off by {ratio_text(factor)}")
        handles.append(handle)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for one in (axes.xaxis, axes.yaxis):
        one.set_major_formatter(StrMethodFormatter("{x:,g}"))
        one.set_minor_formatter(NullFormatter())
    axes.set_aspect("equal")
    axes.set_xlabel("Measured makespan (s)")
    axes.set_ylabel("Predicted makespan (s)")
    axes.legend(
        handles=[*handles, Patch(color=LIGHT_GREY, label="within 15 %")],
        loc="upper left",
        bbox_to_anchor=(1.02, 1),
        fontsize=8,
    )
    axes.spines[["top", "right"]].set(visible=True, color=GREY)
    return figure
