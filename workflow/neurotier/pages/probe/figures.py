"""All figures of a probe, from its table; each is drawn in the module of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.probe.concurrency import concurrency_finding, draw_concurrency
from neurotier.pages.probe.one_stream import draw_one_stream, one_stream_finding


def draw_all(rows: Sequence[Row], folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``."""
    draw_one_stream(rows, folder / "one_stream")
    draw_concurrency(rows, folder / "concurrency")


def findings(rows: Sequence[Row]) -> dict[str, str]:
    """What every figure says."""
    return {"one_stream": one_stream_finding(rows), "concurrency": concurrency_finding(rows)}
