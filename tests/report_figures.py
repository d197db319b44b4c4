"""Report and figures of synthetic results folders; figures are drawn once for all tests: some take a CPU second."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.pages.kit.figures import draw_all
from neurotier.pages.report.data import collect
from neurotier.pages.report.figures import FIGURES
from neurotier.pages.report.page import write_page
from page_reader import Reader
from report_data import make_results


def read_report(places: Places, settings: Settings) -> Reader:
    """Write the run report and read it."""
    path = places.results / "report.html"
    write_page(collect(places, settings), path)
    reader = Reader()
    reader.feed(path.read_text())
    assert not reader.open
    return reader


def add_figures(folder: Path, count: int, **changes: Any) -> Path:
    """Put the figures of :func:`report_data.make_results` with these arguments into a folder, which is made."""
    folder.mkdir(parents=True)
    for name, content in drawn(count, **changes).items():
        (folder / name).write_bytes(content)
    return folder


@cache
def drawn(count: int, **changes: Any) -> dict[str, bytes]:
    """The files of all figures, by name."""
    with tempfile.TemporaryDirectory(prefix="neurotier-test-") as name:
        places, settings = make_results(Path(name), count, **changes)
        draw_all("report", FIGURES, collect(places, settings), places.figures)
        return {path.name: path.read_bytes() for path in places.figures.iterdir()}
