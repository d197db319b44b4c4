"""The page of the advice: how long a run will take with each placement; the recommendation comes first."""

from __future__ import annotations

from markupsafe import Markup, escape

from neurotier.advice.room import NEEDING
from neurotier.advice.small_files import FILES_SPREAD
from neurotier.advice.words import advices, alike, interval
from neurotier.core.files import read_json
from neurotier.core.quantities import counted, percent
from neurotier.model.prediction import DRAWS, MODEL_ERROR
from neurotier.pages.kit.chart import BLUE, LIGHT_GREY, NOTHING, ORANGE, Chart
from neurotier.pages.kit.marks import Kind, Lanes, Line, Points, Stack
from neurotier.pages.kit.page import OPEN, Data, Figure, Page, Section, Verdict, linked


def verdicts(data: Data) -> list[Verdict]:
    """The recommendations, and how long the run will take with the configured placement."""
    return [
        Verdict(line, OPEN, more=[f"On {row['placement']}, in use: {interval(row)}." for row in rows if row["in_use"]])
        for line, rows in zip(advices(data["advice"]), alike(data["advice"]).values(), strict=True)
    ]


def advised(data: Data) -> Chart:
    """A bar for each placement. As long as one prediction lies within the interval of the other, the difference does
    not matter.
    """
    panels = alike(data["advice"])
    if not panels:
        return Chart(NOTHING)
    said, lanes = dict(zip(panels, advices(data["advice"]), strict=True)), []
    for (jobs, cache), rows in panels.items():
        title = f"{jobs} at once, page cache {cache}, {counted(rows[0]['participants'], 'participant')}"
        for row in rows:
            reason = "" if row["fits"] else f"; {row['reason']}"
            text = f"{interval(row)}, {row['limit']} ({percent(row['limit_share'])}){reason}"
            name = row["placement"] + " (in use)" * row["in_use"]
            colour = BLUE if row["fits"] else LIGHT_GREY
            lanes.append(row | {"panel": title, "lane": name, "text": text, "colour": colour})
    return Lanes(
        said[max(panels, key=lambda panel: panel[0])],
        data["advice"],
        "Bar: predicted makespan; line: from the 5th to the 95th percentile of the draws; diamond: Eq. (1) of"
        " Hayot-Sasson, Brown and Glatard (2020), all bytes by one stream and no computing. Grey: does not fit.",
        marks=(
            Stack({"predicted_s": Kind("", BLUE)}),
            Line("low_s", "high_s"),
            Points("paper_s", "Eq. (1)", marker="D", colour=ORANGE),
        ),
        x="Predicted makespan",
        lanes=lanes,
        shared=True,
    )


def room(data: Data) -> Section:
    """The section on whether there is room for each placement."""
    columns = " ".join(f"{role}_tier {role}_needed_bytes {role}_free_bytes" for role in NEEDING)
    rows = [row | {"fits": "yes" if row["fits"] else f"no: {row['reason']}"} for row in data["advice"]]
    note = (
        "Needed on the dataset tier: the images still to be fetched; on the work tier: the most that simultaneous jobs,"
        " or an app's group level, take; on the results tier: the results still to be written, for an app with the copy"
        " of all outputs that its group level makes. A tmpfs has no more free space than memory is available."
    )
    return Section("Room", rows=rows, columns=f"placement parallelism {columns} fits", note=note)


def basis(data: Data) -> Section:
    """The section on what the prediction is based on."""
    places = data.places
    probe = linked(places.results / "probe.html", places.results, "their probe")
    return Section(
        "What it rests on",
        items=[
            *(Markup("{}.").format(escape(line)) for line in read_json(places.advice / "basis.json")),
            Markup("The tiers' speeds are those of {}; the page cache is that of this kernel's settings.").format(
                probe
            ),
            (
                f"The interval is from the 5th to the 95th percentile of {DRAWS - 1} draws. They vary the speed of"
                " every tier within the range of its probe; CPU time as the records scatter, and as they leave open how"
                f" it grows with size; the cost of small files, by a further {percent(FILES_SPREAD)} (standard"
                " deviation); what is read back from a network tier, from none to all; how many images are fetched at"
                " once, from the number in the calibration to the one requested; what others use of the processors,"
                f" from none to twice as much; and each result by {percent(MODEL_ERROR)}, the error of the model with"
                " known inputs."
            ),
        ],
    )


def subtitle(data: Data) -> str:
    """The text below the title: what is predicted."""
    row = data["advice"][0]
    return f"{row['tool']}, {counted(row['participants'], 'participant')}, predicted before it is run"


PAGE = Page(
    name="advice",
    title="What the run will take",
    caption="The advice on one page: how long a run will take with each placement, what limits it, whether there is"
    " room, and what the prediction rests on. The page shows whether another tier is worth it before anything is"
    " run.",
    subtitle=subtitle,
    tables=("advice/advice",),
    prints_verdicts=False,  # target advise prints all of it, last
    verdicts=verdicts,
    parts=(Figure("Predicted makespans", advised), room, basis),
)
