"""Figures of synthetic results folders, drawn once for all tests that show them: to draw some takes a CPU second."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.report.data import collect
from neurotier.pages.report.figures import FIGURES
from report_data import make_results


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
