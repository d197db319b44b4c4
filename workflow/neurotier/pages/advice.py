"""The page of the advice: what a run will take with each placement, the recommendation first."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup, escape

from neurotier.advice.room import NEEDING
from neurotier.advice.small_files import FILES_SPREAD
from neurotier.advice.words import advices, alike, interval, recommendation
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.quantities import counted, percent
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.model.prediction import DRAWS, MODEL_ERROR
from neurotier.pages.kit.chart import BLUE, LIGHT_GREY, NOTHING, ORANGE, Chart
from neurotier.pages.kit.marks import Kind, Lanes, Line, Points, Stack
from neurotier.pages.kit.page import OPEN, Figure, Page, Section, Verdict


class Advice(NamedTuple):
    """Rows of ``advice.tsv``, what they rest on in sentences, and whether there is a page on the tiers."""

    rows: list[Row]
    basis: list[str]
    probed: bool


def read(places: Places, _settings: Settings) -> Advice:
    """The advice of a results folder."""
    rows, basis = read_table(places.advice / "advice.tsv", "advice"), read_json(places.advice / "basis.json")
    return Advice(rows, basis, (places.results / "probe.html").exists())


def verdicts(data: Advice) -> list[Verdict]:
    """The recommendations, and how long the run takes where it is configured to be."""
    return [
        Verdict(line, OPEN, more=[f"On {row['placement']}, in use: {interval(row)}." for row in rows if row["in_use"]])
        for line, rows in zip(advices(data.rows), alike(data.rows).values(), strict=True)
    ]


def advised(data: Advice) -> Chart:
    """A bar for each placement. As long as one prediction lies within the interval of the other, the difference does
    not matter.
    """
    panels = alike(data.rows)
    if not panels:
        return Chart(NOTHING)
    chosen = max(panels, key=lambda panel: panel[0])
    about = f"{chosen[0]} at once, cache {chosen[1]}: " if len(panels) > 1 else ""
    lanes = []
    for (jobs, cache), rows in panels.items():
        title = f"{jobs} at once, page cache {cache}, {rows[0]['participants']:,} participants"
        for row in rows:
            reason = "" if row["fits"] else f"; {row['reason']}"
            text = f"{interval(row)}, {row['limit']} ({percent(row['limit_share'])}){reason}"
            lanes.append(row | {"panel": title, "lane": row["placement"] + " (in use)" * row["in_use"], "text": text})
    return Lanes(
        about + recommendation(panels[chosen]),
        data.rows,
        "Bar: predicted makespan; line: from the 5th to the 95th percentile of the draws; diamond: Eq. (1) of"
        " Hayot-Sasson, Brown and Glatard (2020), all bytes by one stream and no computing. Grey: does not fit.",
        marks=(
            Stack({"predicted_s": Kind("", BLUE)}, colour=lambda row: BLUE if row["fits"] else LIGHT_GREY),
            Line("low_s", "high_s"),
            Points("paper_s", "Eq. (1)", marker="D", colour=ORANGE, filled=True),
        ),
        x="Predicted makespan (s)",
        lanes=lanes,
        shared=True,
    )


def room(data: Advice) -> Section:
    """Whether there is room for each placement."""
    columns = [f"{role}_{what}" for role in NEEDING for what in ("tier", "needed_bytes", "free_bytes")]
    rows = [row | {"fits": "yes" if row["fits"] else f"no: {row['reason']}"} for row in data.rows]
    note = (
        "The dataset needs what is still to be fetched, the work what all jobs at once reserve at most. A tmpfs has"
        " no more than the memory that is available."
    )
    return Section("Room", rows=rows, columns=["placement", "parallelism", *columns, "fits"], note=note)


def basis(data: Advice) -> Section:
    """What it rests on."""
    probe = Markup('<a href="probe.html">their probe</a>') if data.probed else "their probe"
    return Section(
        "What it rests on",
        items=[
            *(Markup("{}.").format(escape(line)) for line in data.basis),
            Markup("The tiers' speeds are those of {}; the page cache is that of this kernel's settings.").format(
                probe
            ),
            (
                f"The interval is from the 5th to the 95th percentile of {DRAWS - 1} draws: every tier between its"
                " least and its most, CPU time as the records scatter and leave open how it grows with size, small"
                f" files by {percent(FILES_SPREAD)} besides (standard deviation), what is read back from a network tier"
                " from none to all, other users of the processors from none to twice as many; and around each by"
                f" {percent(MODEL_ERROR)}, by which the model is off where it knows all that it asks for."
            ),
        ],
    )


def under(data: Advice) -> str:
    """Of what it is."""
    return f"{data.rows[0]['tool']}, {counted(data.rows[0]['participants'], 'participant')}, predicted before it is run"


PAGE = Page(
    name="advice",
    title="What the run will take",
    category="Advice",
    caption="The advice on one page: how long a run will take with each placement, what limits it, whether there is"
    " room, and what the prediction rests on. The page shows whether another tier is worth it before anything is"
    " run.",
    under=under,
    tables={"advice": "advice/advice.tsv"},
    read=read,
    speaks=False,  # target advise says all of it, last
    verdicts=verdicts,
    parts=(Figure("Predicted makespans", advised), room, basis),
)
