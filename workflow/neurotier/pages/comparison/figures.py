"""All figures of a comparison, from its tables; each is drawn in the module of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.comparison.accounts import accounts_finding, draw_accounts
from neurotier.pages.comparison.cpu_io_sums import cpu_io_sums_finding, draw_cpu_io_sums
from neurotier.pages.comparison.differences import differences_finding, draw_differences
from neurotier.pages.comparison.gantts import draw_gantts, gantts_finding
from neurotier.pages.comparison.image_start import draw_image_start, image_start_finding
from neurotier.pages.comparison.makespan import draw_makespan, makespan_finding
from neurotier.pages.comparison.phases import draw_phases, phases_finding
from neurotier.pages.comparison.tier_bytes import draw_tier_bytes, tier_bytes_finding
from neurotier.pages.kit.findings import Finding

FIGURES = (*("makespan", "cpu_io_sums", "accounts", "differences", "phases", "gantts", "image_start", "tier_bytes"),)


def draw_all(runs: Sequence[Row], participants: Sequence[Row], traffic: Sequence[Row], folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``.

    Parameters
    ----------
    runs, participants, traffic
        Rows of ``compared_runs.tsv``, ``compared_participants.tsv`` and ``compared_bytes.tsv``; any may be empty.
    folder
        Where to; it is made.
    """
    draw_makespan(runs, folder / "makespan")
    draw_cpu_io_sums(runs, folder / "cpu_io_sums")
    draw_accounts(runs, folder / "accounts")
    draw_differences(runs, participants, folder / "differences")
    draw_phases(runs, participants, folder / "phases")
    draw_gantts(runs, participants, folder / "gantts")
    draw_image_start(runs, participants, folder / "image_start")
    draw_tier_bytes(runs, traffic, folder / "tier_bytes")


def findings(runs: Sequence[Row], participants: Sequence[Row], traffic: Sequence[Row]) -> dict[str, Finding]:
    """What every figure says."""
    return {
        "makespan": makespan_finding(runs),
        "cpu_io_sums": cpu_io_sums_finding(runs),
        "accounts": accounts_finding(runs),
        "differences": differences_finding(runs, participants),
        "phases": phases_finding(runs, participants),
        "gantts": gantts_finding(runs, participants),
        "image_start": image_start_finding(runs, participants),
        "tier_bytes": tier_bytes_finding(runs, traffic),
    }
