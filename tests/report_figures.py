"""Reports of synthetic results folders."""

from __future__ import annotations

from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.pages.report import PAGE
from page_reader import Reader, read


def read_report(places: Places, settings: Settings) -> Reader:
    """Write the run report with its figures, and read it."""
    PAGE.write(places, settings)
    return read(places.results / "report.html")
