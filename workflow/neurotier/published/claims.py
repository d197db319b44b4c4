"""Check the paper's claims that state a number or an order (``claims.yaml``) against its raw logs.

A claim has checks, or is itself a check. A check has cases: every combination of its ``measure``, ``engine``, ``um``,
``processes`` and ``device``, each of which is one value or a list. With ``over``, the figure of a case is divided by
that of another case, which differs only in what ``over`` names; if this is a list, by the least. The figures may have
to meet these expectations:

``said``
    Each figure is this number, or within this range of two numbers; or a number or range for each device named.
``above``, ``below``
    Each figure is above or below this bound.
``least``, ``greatest``
    The least or greatest figure is that of this device, among those that have figures.
``ascending``
    The figures ascend in the order of ``device``.
``similar``
    The greatest figure is less than this many times the least.
``alike``
    Two conditions do not differ, by Welch's test; undecided unless the repetitions give their ratio to a tenth.

A check without any of these only shows its figures.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import three_digits
from neurotier.core.tables import Row, Rows
from neurotier.model.loaded import loaded
from neurotier.published.bigbrain import HEADER, INCREMENT, TASK, WRITE, BlockRun
from neurotier.published.conditions import condition, device_and_mode, without_outliers
from neurotier.published.knowledge import streams_of
from neurotier.published.replay import Replay
from neurotier.run.compared import is_compared

HOLDS, PARTLY, CONTRADICTED, UNKNOWN = VERDICTS = "holds", "holds partly", "contradicted", "cannot be told"

AGREES, NEAR = 0.1, 0.3
"""A figure agrees if it is within a tenth of the stated one, and is near if it is within three tenths."""

SIGNIFICANT = 0.05
"""Makespans differ if the p-value of the test is below this."""

BIDS_APP = "bids-app"


class AbsentError(LookupError):
    """An error that says that the logs at hand do not contain what a claim is about."""


class Case(NamedTuple):
    """The case that a figure describes; ``device`` is the name of a device in a mode."""

    measure: str
    engine: str
    um: int
    processes: int
    device: str

    @property
    def condition(self) -> IncrementCondition:
        """The condition of the BigBrain incrementation."""
        return condition(self.um, self.engine, self.processes, self.device)

    @property
    def placement(self) -> str:
        """The device's name in the BIDS App example, which has all devices but Optane only in Memory mode."""
        name, mode = device_and_mode(self.device)
        return f"{name} {mode}" if name == "Optane" else name

    def within(self, several: Iterable[Case]) -> str:
        """What distinguishes a case from several others, in words."""
        words = {
            "measure": read_claims()["names"].get(self.measure, self.measure),
            "engine": read_claims()["names"][self.engine],
            "um": f"{self.um} µm",
            "device": self.placement if self.engine == BIDS_APP else self.device,
            "processes": f"with {self.processes}",
        }
        return ", ".join(word for name, word in words.items() if len({getattr(one, name) for one in several}) > 1)


@cache
def read_claims() -> Row:
    """The contents of ``claims.yaml``: the claims, and the words that describe their cases."""
    claims: Row = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return claims


def outside_s(run: BlockRun) -> float:
    """The mean time that a task spent outside its phases, s."""
    ended = {task.block for task in run.named(TASK)}
    inside_s = sum(one.duration_s for one in run.work if one.block in ended)
    return (run.sum_s(TASK) - inside_s) / max(len(ended), 1)


OF_A_RUN: dict[str, Callable[[BlockRun], float]] = {
    "makespan_s": lambda run: run.makespan_s,
    "header_s": lambda run: run.sum_s(HEADER),
    "increment_s": lambda run: run.sum_s(INCREMENT),
    "write_s": lambda run: run.sum_s(WRITE),
    "total_s": lambda run: run.sum_s(HEADER, INCREMENT, WRITE),
    "block_read_s": lambda run: run.sum_s(INCREMENT) / run.condition.blocks,
    "block_write_s": lambda run: run.sum_s(WRITE) / run.condition.blocks,
    "outside_s": outside_s,
    "data_gib": lambda run: run.data_bytes / 2**30,
}
"""Measures of a single run, which are averaged over the repetitions without outliers."""

OF_ALL: dict[str, Callable[[Sequence[BlockRun]], float]] = {
    "fastest_write_s": lambda runs: min(one.duration_s for run in without_outliers(runs) for one in run.named(WRITE)),
    "only_reads_gbit_s": lambda runs: 8e-9 * loaded(streams_of(without_outliers(runs)[0])).read_bytes_per_s,
    "only_writes_gbit_s": lambda runs: 8e-9 * loaded(streams_of(without_outliers(runs)[0])).write_bytes_per_s,
    "mean_parallelism": lambda runs: statistics.fmean(run.mean_parallelism for run in runs),
    "slowest_over_fastest": lambda runs: max(run.makespan_s for run in runs) / min(run.makespan_s for run in runs),
    "unwritten_blocks": lambda runs: statistics.fmean(len(run.incomplete_blocks) for run in runs),
    "repetitions": len,
}
"""Measures of all repetitions together, as in the paper."""


def figure_of(replay: Replay, case: Case) -> float:
    """The figure of a case; raises :class:`AbsentError` if its logs are missing."""
    measure, one = case.measure, case.condition
    if measure == "sites":
        if not (tasks := replay.bids_app.participants):
            raise AbsentError("no run of the BIDS App example")
        return len({row["participant"].rpartition("_")[0] for row in tasks})
    if case.engine == BIDS_APP:
        about = case.placement, case.processes
        rows = [row for row in replay.bids_app.runs if (row["placement"], row["parallelism"]) == about]
        if not (rows := list(filter(is_compared, rows))):
            raise AbsentError(f"no run of the BIDS App example on {about[0]} with {about[1]} processes")
        return len(rows) if measure == "repetitions" else statistics.fmean(row[measure] for row in rows)
    if measure in ("read_mb_s", "write_mb_s", "drawn_s", "equation_s"):
        read_mb_s, write_mb_s = replay.measured_mb_s.get(case.device, (None, None))
        known = {"read_mb_s": read_mb_s, "write_mb_s": write_mb_s}
        known |= {"drawn_s": replay.drawn_equation_s(one), "equation_s": replay.equation_one_s(one)}
        if (value := known[measure]) is None:
            raise AbsentError(f"no storage benchmark of {case.device}")
        return value
    runs = runs_of(replay, case)
    if measure in OF_ALL:
        return float(OF_ALL[measure](runs))
    return statistics.fmean(map(OF_A_RUN[measure], without_outliers(runs)))


def runs_of(replay: Replay, case: Case) -> list[BlockRun]:
    """Every repetition of a case's condition; raises :class:`AbsentError` if there is none."""
    if case.condition not in replay.conditions:
        about = f"{case.processes} processes at {case.um} µm, {read_claims()['names'][case.engine]}"
        raise AbsentError(f"no run of {case.device} with {about}")
    return replay.conditions[case.condition]


def cases_of(about: Row, otherwise: Row) -> list[Case]:
    """All combinations of the values that a check names, in order; other values are from ``otherwise``."""
    values = [about.get(name, otherwise[name]) for name in Case._fields]
    return [Case(*one) for one in itertools.product(*(one if isinstance(one, list) else [one] for one in values))]


@dataclass
class Judged:
    """The results of a claim's checks: texts, how far each figure is off, as a share, and which runs are missing."""

    replay: Replay
    texts: list[str] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def check(self, check: Row) -> None:
        """Judge one check."""
        said: Any = check.get("said")
        of_devices = {"device": list(said)} if isinstance(said, dict) else {}
        cases, found = cases_of({**of_devices, **check}, read_claims()["defaults"]), dict[Case, float]()
        if "alike" in check:
            with self.noting_absent():
                self.check_alike(cases)
            return
        for case in cases:
            with self.noting_absent():
                found[case] = check.get("times", 1.0) * figure_of(self.replay, case) / self.divisor(case, check)
        together = {"least", "greatest", "ascending", "similar"} & check.keys()
        if not found or (together and len(found) < 2):
            return
        self.off += [0.0 if is_so else math.inf for is_so in expectations_met(check, found)]
        for case, value in found.items() if said else ():
            of_case = said[case.device] if of_devices else said
            low, high = of_case if isinstance(of_case, list) else [of_case] * 2
            self.off.append(max(low / value if value else math.inf, value / high, 1.0) - 1)
        unit = next((unit for ending, unit in read_claims()["units"].items() if cases[0].measure.endswith(ending)), "")
        unit = " times" if "over" in check else unit
        names = {case: case.within(cases) for case in found}
        text = "; ".join(f"{names[one]}: {three_digits(found[one])}{unit}".removeprefix(": ") for one in found)
        self.texts.append(f"{check['text']}: {text}" if "text" in check else text)

    @contextmanager
    def noting_absent(self) -> Iterator[None]:
        """Catch :class:`AbsentError`, and note what the logs do not contain."""
        try:
            yield
        except AbsentError as error:
            self.missing.append(str(error))

    def divisor(self, case: Case, check: Row) -> float:
        """The divisor of a case's figure: the least of the figures that ``over`` names and that are known."""
        if "over" not in check:
            return 1.0
        found = []
        for other in cases_of(check["over"], case._asdict()):
            with self.noting_absent():
                found.append(figure_of(self.replay, other))
        if least := min(found, default=0.0):
            return least
        raise AbsentError(
            f"{case.measure} of {case.device} has nothing to be compared with" if found else self.missing[-1]
        )

    def check_alike(self, cases: Sequence[Case]) -> None:
        """Judge whether two conditions have the same makespan."""
        from scipy.stats import ttest_ind

        times = [[math.log(run.makespan_s) for run in without_outliers(runs_of(self.replay, case))] for case in cases]
        device, _ = device_and_mode(cases[0].device)
        text = f"{device} {' and '.join(three_digits(math.exp(statistics.fmean(some))) for some in times)} s"
        if min(map(len, times)) < 2:
            self.missing.append(f"{text}: too few repetitions to decide")
            return
        test = ttest_ind(*times, equal_var=False)
        low, high = (math.exp(end) for end in test.confidence_interval())
        p, ratio = three_digits(test.pvalue), f"{three_digits(low)} to {three_digits(high)}"
        self.texts.append(f"{text} (p = {p}, ratio {ratio})")
        if test.pvalue < SIGNIFICANT:
            self.off.append(math.inf)
        elif max(1 / low, high) <= 1 + AGREES:
            self.off.append(0.0)
        else:
            self.missing.append(f"too few repetitions to decide for {device}")

    @property
    def row(self) -> Row:
        """The figures and the verdict. If runs are missing, a claim can be contradicted, but not confirmed."""
        missing = list(dict.fromkeys(self.missing))
        if not self.off:
            verdict = UNKNOWN
        elif max(self.off) <= AGREES:
            verdict = UNKNOWN if missing else HOLDS
        else:
            verdict = CONTRADICTED if min(self.off) > NEAR else PARTLY
        return {"found": "; ".join([*self.texts, *missing]), "verdict": verdict}


def expectations_met(check: Row, found: Mapping[Case, float]) -> list[bool]:
    """Whether each expectation other than ``said`` is met."""
    low, high, every = check.get("above", -math.inf), check.get("below", math.inf), found.values()
    is_so = [low < value < high for value in every] if {"above", "below"} & check.keys() else []
    is_so += [max(every) < check["similar"] * min(every)] if "similar" in check else []
    for _, group in itertools.groupby(found, key=lambda case: case[:-1]):
        values = {case.device: found[case] for case in group}
        for name, end in (("least", min), ("greatest", max)):
            if check.get(name) in values:
                is_so.append(end(values.values()) == values[check[name]])
        is_so += [list(values.values()) == sorted(values.values())] if "ascending" in check else []
    return is_so


def claim_rows(replay: Replay) -> Rows:
    """The rows of ``published_claims.tsv``, in the order of the paper."""
    rows = []
    for claim in read_claims()["claims"]:
        judged = Judged(replay)
        for check in claim.get("checks", [claim]):
            judged.check(check)
        rows.append({"place": claim["place"], "claim": claim["claim"], **judged.row})
    return rows


def counts_text(rows: Sequence[Row]) -> str:
    """How many claims hold, in words.

    >>> counts_text([{"verdict": "holds"}, {"verdict": "contradicted"}, {"verdict": "cannot be told"}])
    'Of 2 claims that these logs can decide, 1 holds, 0 hold partly, 1 is contradicted; 1 cannot be told'
    """
    counts = Counter(row["verdict"] for row in rows)
    holds, partly, against, unknown = (counts[verdict] for verdict in VERDICTS)
    said = f"Of {len(rows) - unknown} claims that these logs can decide, {holds} {'holds' if holds == 1 else 'hold'}"
    said += f", {partly} {'holds' if partly == 1 else 'hold'} partly, {against} {'is' if against == 1 else 'are'}"
    return f"{said} contradicted" + (f"; {unknown} {UNKNOWN}" if unknown else "")
