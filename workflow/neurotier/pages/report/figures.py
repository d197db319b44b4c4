"""All figures of a results folder, from its tables; each is drawn in the module of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.report.account import draw_account
from neurotier.pages.report.brain_volume import draw_brain_volume
from neurotier.pages.report.cpu_io import draw_cpu_io
from neurotier.pages.report.gantt import draw_gantt

__all__ = ["FIGURES", "draw_account", "draw_all", "draw_brain_volume", "draw_cpu_io", "draw_gantt"]

FIGURES = ("account", "cpu_io", "gantt", "brain_volume")


def draw_all(profile: Sequence[Row], runs: Sequence[Row], group: Sequence[Row], folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``.

    Parameters
    ----------
    profile, runs, group
        Rows of ``profile.tsv``, ``runs.tsv`` and ``group.tsv``; any may be empty.
    folder
        Where to; it is made.
    """
    draw_account(profile, folder / "account")
    draw_cpu_io(profile, folder / "cpu_io")
    draw_gantt(profile, runs, folder / "gantt")
    draw_brain_volume(group, folder / "brain_volume")
