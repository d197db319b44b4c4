"""Conditions of the incrementation: what repetitions have in common, for runs of one's own and published ones alike.

Runs of both kinds are brought to the same columns first (*alike*): those of ``bigbrain_runs.tsv`` and an origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neurotier.bigbrain.image import BLOCKS
from neurotier.bigbrain.tasks import PUBLISHED
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.statistics import is_compared
from neurotier.published import conditions as paper
from neurotier.published.bids_app import ORIGIN
from neurotier.published.bigbrain import HEADER, INCREMENT, WRITE
from neurotier.published.conditions import off_factor
from neurotier.published.members import PAPER

FLUID = "fluid"
FLUIDS = (FLUID, "fluid fitted", "fluid a priori")
"""Fluid members of the model, the one to show first."""

SUMS = ("start_up_s", "load_header_s", "read_s", "increment_s", "write_s")
MEDIANS = (*SUMS, "mean_parallelism")
PUBLISHED_SUMS = {"load_header_s": HEADER, "increment_s": INCREMENT, "write_s": WRITE}
"""Our names of the published phases."""


@dataclass(frozen=True)
class Condition:
    """What repetitions have in common; ``block_bytes`` is the size of all blocks together."""

    origin: str
    engine: str
    tier: str
    parallelism: int
    blocks: int
    block_bytes: int
    iterations: int
    pairing: str

    @classmethod
    def of(cls, row: Row) -> Condition:
        """The condition of a run, or of a row of ``bigbrain_conditions.tsv``."""
        return cls(**{name: row[name] for name in cls.__match_args__})

    @property
    def is_published(self) -> bool:
        """Whether the paper measured it."""
        return self.origin == ORIGIN

    @property
    def resolution_um(self) -> int | None:
        """Resolution of the published image, um; ``None`` of a condition of one's own."""
        known = (size for size, count in BLOCKS.items() if count == self.blocks)
        return next(known, None) if self.is_published else None

    @property
    def panel(self) -> tuple[int, str, int] | None:
        """What published conditions share that stand in one figure of the paper; ``None`` of one's own."""
        return None if self.resolution_um is None else (self.resolution_um, self.engine, self.parallelism)


def own_runs(runs: Iterable[Row], origin: str) -> list[Row]:
    """Rows of ``bigbrain_runs.tsv`` with their origin."""
    return [{"origin": origin, **run} for run in runs]


def published_runs(runs: Iterable[Row], phases: Iterable[Row]) -> list[Row]:
    """Published runs of the paper's figures, in their order, with the columns that conditions and figures need.

    Parameters
    ----------
    runs, phases
        Rows of ``published_runs.tsv`` and ``published_phases.tsv``.
    """
    sums = {(row["run"], row["phase"]): row["sum_s"] for row in phases}
    found = []
    for run in runs:
        if run["variant"] is None:
            own_sums = {name: sums.get((run["run"], phase), 0.0) for name, phase in PUBLISHED_SUMS.items()}
            found.append((paper.order(paper_condition(run)), alike(run) | own_sums))
    return [row for _, row in sorted(found, key=lambda one: one[0])]


def paper_condition(row: Row) -> paper.Condition:
    """The published condition of a row of ``published_runs.tsv`` or ``published_predictions.tsv``."""
    return paper.Condition(*(row[name] for name in ("resolution_um", "engine", "processes", "device", "mode")))


def alike(run: Row) -> Row:
    """A row of ``published_runs.tsv`` as one of our own, without its phases."""
    return {
        "origin": ORIGIN,
        "engine": run["engine"],
        "tier": paper_condition(run).place,
        "parallelism": run["processes"],
        "blocks": BLOCKS[run["resolution_um"]],
        "block_bytes": run["data_bytes"] // run["iterations"],
        "iterations": run["iterations"],
        "pairing": PUBLISHED,
        "cache": None,
        "start_up_s": None,
        "read_s": None,
        "peak_parallelism": None,
        **{name: run[name] for name in ("repetition", "valid", "incomplete_blocks", "makespan_s", "mean_parallelism")},
    }


def by_condition(runs: Iterable[Row]) -> dict[Condition, list[Row]]:
    """All runs, invalid ones too, by condition; those of one's own by parallelism, else in the order given."""
    found: dict[Condition, list[Row]] = {}
    for run in runs:
        found.setdefault(Condition.of(run), []).append(run)
    own = sorted((one for one in found if not one.is_published), key=lambda one: one.parallelism)
    return {one: found[one] for one in [*own, *(one for one in found if one.is_published)]}


def condition_rows(runs: Sequence[Row], predictions: Iterable[Row], published: Iterable[Row]) -> list[Row]:
    """Rows of ``bigbrain_conditions.tsv``.

    Parameters
    ----------
    runs
        Runs of all origins, alike.
    predictions, published
        Rows of ``bigbrain_predictions.tsv`` and ``published_predictions.tsv``.

    Published conditions without a valid run are left out; those of one's own are there, without values.
    """
    said: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in predictions:
        said.setdefault((None, row["engine"], row["tier"], row["parallelism"]), {})[row["member"]] = row
    for row in published:
        about = paper_condition(row)
        said.setdefault((about.resolution_um, about.engine, about.place, about.processes), {})[row["member"]] = row
    rows = []
    for one, members in by_condition(runs).items():
        valid = [run for run in members if is_compared(run)]
        if valid or not one.is_published:
            guesses = said.get((one.resolution_um, one.engine, one.tier, one.parallelism), {})
            rows.append(
                {name: getattr(one, name) for name in Condition.__match_args__}
                | {"runs": len(valid), "invalid_runs": len(members) - len(valid)}
                | measured(valid)
                | predicted(guesses, measured(valid)["makespan_s"])
            )
    return rows


def measured(valid: Sequence[Row]) -> Row:
    """Medians and range over valid runs; empty of none."""
    makespan = spread(valid, "makespan_s")
    medians = {name: spread(valid, name) for name in MEDIANS}
    return {
        "cache": ", ".join(sorted({run["cache"] for run in valid if run["cache"]})) or None,
        "incomplete_blocks": max((run["incomplete_blocks"] for run in valid), default=0),
        "makespan_s": makespan.median if makespan else None,
        "makespan_low_s": makespan.low if makespan else None,
        "makespan_high_s": makespan.high if makespan else None,
        **{name: found.median if found else None for name, found in medians.items()},
        "peak_parallelism": max(
            (run["peak_parallelism"] for run in valid if run["peak_parallelism"] is not None), default=None
        ),
    }


def predicted(guesses: dict[str, Row], makespan_s: float | None) -> Row:
    """What Eq. (1) and a fluid model say, by member, and how that compares with what was measured, s."""
    fluid_member = next((member for member in FLUIDS if member in guesses), None)
    fluid = guesses[fluid_member] if fluid_member else {}
    paper_s = guesses[PAPER]["predicted_s"] if PAPER in guesses else None
    return {
        "equation_one_s": paper_s,
        "equation_one_ratio": ratio(paper_s, makespan_s),
        "fluid_member": fluid_member,
        "fluid_fitted_on": fluid.get("fitted_on", False) if fluid else None,
        "fluid_s": fluid.get("predicted_s"),
        "fluid_low_s": fluid.get("low_s"),
        "fluid_high_s": fluid.get("high_s"),
        "fluid_ratio": ratio(fluid.get("predicted_s"), makespan_s),
    }


def ratio(predicted_s: float | None, measured_s: float | None) -> float | None:
    """Predicted over measured, where both are known."""
    return predicted_s / measured_s if predicted_s and measured_s else None


def factors(rows: Iterable[Row]) -> dict[str, tuple[float, int]]:
    """By how much Eq. (1) and the fluid model miss conditions it was not fitted to, geometric mean, and how many."""
    known = list(rows)
    ratios = {
        "equation_one": [row["equation_one_ratio"] for row in known if row["equation_one_ratio"]],
        FLUID: [row["fluid_ratio"] for row in known if row["fluid_ratio"] and not row["fluid_fitted_on"]],
    }
    return {name: (factor, len(some)) for name, some in ratios.items() if (factor := off_factor(some)) is not None}
