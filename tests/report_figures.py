"""Report and figures of synthetic results folders."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.pages.report import PAGE
from page_reader import Reader, read
from report_data import make_results


def read_report(places: Places, settings: Settings) -> Reader:
    """Write the run report with its figures, and read it."""
    PAGE.write(places, settings)
    return read(places.results / "report.html")


@cache
def drawn(count: int, **changes: Any) -> dict[str, str]:
    """The figures of :func:`report_data.make_results` with these arguments: their SVG and TSV, by name."""
    with tempfile.TemporaryDirectory(prefix="neurotier-test-") as name:
        places, settings = make_results(Path(name), count, **changes)
        PAGE.write(places, settings)
        return {path.name: path.read_text() for path in places.figures.iterdir() if path.suffix != ".png"}
