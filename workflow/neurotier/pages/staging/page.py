"""The staging on one page, answers first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.pages.kit.html import write_html
from neurotier.pages.kit.workload import draw_workload
from neurotier.pages.staging import answers
from neurotier.pages.staging.figures import FIGURES
from neurotier.storage.published import STAGING
from neurotier.storage.staging.curves import place_text
from neurotier.storage.staging.grid import STEP

TEMPLATE = Path(__file__).resolve().parent / "staging.html.j2"


def write_page(files: Mapping[str, Path], _settings: Settings, page: Path) -> list[str]:
    """Draw the figures and write ``staging.html``, and give back what it says first; equal tables give equal bytes.

    Parameters
    ----------
    files
        The tables ``points`` and ``published``.
    page
        HTML file to write.
    """
    rows = read_table(files["points"], "staging")
    questions = {
        "Do servers help?": answers.servers(rows).sentence,
        "Is reading hidden by the page cache?": answers.page_cache(rows),
        "Where does synchronising cost more than it brings?": answers.scaling(rows, STEP).sentence,
    }
    common = draw_workload(FIGURES, rows, rows, files, page, "engine_version")
    context = {
        "questions": questions,
        "waiting": answers.waiting(rows),
        "rows": [row | {"place": place_text(row["tier"], row["engine"])} for row in common["rows"]],
        "published": STAGING,
    }
    write_html(TEMPLATE, common | context, page)
    return list(questions.values())
