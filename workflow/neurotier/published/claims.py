"""The paper's claims that state a number or an order (``claims.yaml``), each held against its raw logs.

A claim has checks, or is one. A check has cases: every combination of its ``measure``, ``engine``, ``um``,
``processes`` and ``device``, each one value or a list. With ``over``, the figure of a case is divided by that of the
same case but for what ``over`` names; by the least, if that is a list. What is expected of the figures:

``said``
    A figure, or the two ends of a range; or either for each of the devices that it names.
``above``, ``below``
    A bound.
``least``, ``greatest``
    Where it is least, or greatest, among those ``device`` which there are figures.
``ascending``
    That they are in the order of ``device``.
``similar``
    How many times the least the greatest may be.
``alike``
    That two do not differ, by Welch's test: not told by so few repetitions unless their ratio is known to a tenth.

A check without any of these only shows its figures.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from neurotier.bigbrain.image import BLOCKS
from neurotier.core.quantities import number
from neurotier.core.tables import Row
from neurotier.model.loaded import loaded
from neurotier.published.bigbrain import GNU_PARALLEL, HEADER, INCREMENT, SPARK, TASK, WRITE, BlockRun
from neurotier.published.conditions import PLACES, condition, steady, tier_of
from neurotier.published.evidence import streams_of
from neurotier.published.replay import Replay
from neurotier.run.compared import is_compared

HOLDS, PARTLY, CONTRADICTED, UNKNOWN = VERDICTS = "holds", "holds partly", "contradicted", "cannot be told"

AGREES, NEAR = 0.1, 0.3
"""A figure agrees that is within a tenth of what was said, and is near within three."""

SIGNIFICANT = 0.05
"""Makespans differ that would differ so by chance less often."""

BIDS_APP = "bids-app"
DEFAULTS = {"measure": "makespan_s", "engine": GNU_PARALLEL, "um": 40, "processes": 25, "device": tier_of(*PLACES[0])}
NAMES = {
    GNU_PARALLEL: "GNU Parallel",
    SPARK: "Spark",
    BIDS_APP: "BIDS App",
    "increment_s": "reading",
    "write_s": "writing",
    "io_sum_s": "I/O",
    "cpu_sum_s": "CPU",
    "only_reads_gbit_s": "only reads",
    "only_writes_gbit_s": "only writes",
}
UNITS = {"_mb_s": " MB/s", "_gbit_s": " Gbit/s", "_gib": " GiB", "_s": " s"}


class AbsentError(LookupError):
    """The logs at hand do not hold what a claim is about."""


class Case(NamedTuple):
    """What one figure is of; ``device`` is a device in a mode, as figures call it."""

    measure: str
    engine: str
    um: int
    processes: int
    device: str

    def within(self, several: Sequence[Case]) -> str:
        """What tells a case from others."""
        words = {
            "measure": NAMES.get(self.measure, self.measure),
            "engine": NAMES[self.engine],
            "um": f"{self.um} µm",
            "device": placement_of(self.device) if self.engine == BIDS_APP else self.device,
            "processes": f"with {self.processes}",
        }
        return ", ".join(word for name, word in words.items() if len({getattr(one, name) for one in several}) > 1)


def placement_of(device: str) -> str:
    """A device as the BIDS App example knows it: but for Optane, in Memory mode alone.

    >>> placement_of("Optane, App Direct"), placement_of("Isilon, Memory mode")
    ('Optane App Direct', 'Isilon')
    """
    name, _, mode = device.partition(", ")
    return f"{name} {mode}" if name == "Optane" else name


def outside_s(runs: Sequence[BlockRun]) -> float:
    """Mean time that a task took besides its phases, s."""
    times_s = []
    for run in runs:
        ended = {task.block for task in run.named(TASK)}
        inside_s = sum(one.duration_s for one in run.work if one.block in ended)
        times_s.append((run.sum_s(TASK) - inside_s) / max(len(ended), 1))
    return statistics.fmean(times_s)


MEASURES: dict[str, Callable[[Sequence[BlockRun]], float]] = {
    "total_s": lambda runs: statistics.fmean(run.sum_s(HEADER, INCREMENT, WRITE) for run in steady(runs)),
    "block_read_s": lambda runs: statistics.fmean(run.increment_s / BLOCKS[run.resolution_um] for run in steady(runs)),
    "block_write_s": lambda runs: statistics.fmean(run.write_s / BLOCKS[run.resolution_um] for run in steady(runs)),
    "fastest_write_s": lambda runs: min(one.duration_s for run in steady(runs) for one in run.named(WRITE)),
    "outside_s": lambda runs: outside_s(steady(runs)),
    "only_reads_gbit_s": lambda runs: 8e-9 * loaded(streams_of(steady(runs)[0])).read_bytes_per_s,
    "only_writes_gbit_s": lambda runs: 8e-9 * loaded(streams_of(steady(runs)[0])).write_bytes_per_s,
    "data_gib": lambda runs: runs[0].data_bytes / 2**30,
    # of all repetitions, as the paper has them
    "mean_parallelism": lambda runs: statistics.fmean(run.mean_parallelism for run in runs),
    "slowest_over_fastest": lambda runs: max(run.makespan_s for run in runs) / min(run.makespan_s for run in runs),
    "unwritten_blocks": lambda runs: statistics.fmean(len(run.incomplete_blocks) for run in runs),
    "repetitions": len,
}
"""Measures of a condition; others are properties of its runs, as means over those that are no outliers."""


def figure_of(replay: Replay, case: Case) -> float:
    """The figure of a case; raises :class:`AbsentError` without the runs that it is of."""
    measure, engine, um, processes, device = case
    place = next(place for place in PLACES if tier_of(*place) == device)
    if measure == "sites":
        if not (tasks := replay.bids_app.participants):
            raise AbsentError("no run of the BIDS App example")
        return len({row["participant"].rpartition("_")[0] for row in tasks})
    if engine == BIDS_APP:
        about = placement_of(device), processes
        rows = [row for row in replay.bids_app.runs if (row["placement"], row["parallelism"]) == about]
        if not (rows := list(filter(is_compared, rows))):
            raise AbsentError(f"no run of the BIDS App example on {about[0]} with {processes} processes")
        return len(rows) if measure == "repetitions" else statistics.fmean(row[measure] for row in rows)
    if measure in ("read_mb_s", "write_mb_s", "drawn_s", "equation_s"):
        one = condition(um, engine, processes, place)
        own = [row.of(statistics.fmean) for row in replay.bandwidths if (row.device, row.mode) == place]
        if measure.endswith("_mb_s"):
            value = own[0][measure == "write_mb_s"] if own else None
        else:
            value = replay.drawn_equation_s(one) if measure == "drawn_s" else replay.equation_one_s(one)
        if value is None:
            raise AbsentError(f"no storage benchmark of {device}")
        return value
    runs = runs_of(replay, case)
    if measure in MEASURES:
        return float(MEASURES[measure](runs))
    return statistics.fmean(getattr(run, measure) for run in steady(runs))


def runs_of(replay: Replay, case: Case) -> list[BlockRun]:
    """Every repetition of a case's condition."""
    place = next(place for place in PLACES if tier_of(*place) == case.device)
    one = condition(case.um, case.engine, case.processes, place)
    if one not in replay.conditions:
        about = f"{case.processes} processes at {case.um} µm, {NAMES[case.engine]}"
        raise AbsentError(f"no run of {case.device} with {about}")
    return replay.conditions[one]


def cases_of(about: Mapping[str, Any], otherwise: Mapping[str, Any]) -> list[Case]:
    """All combinations of what a check names, the places of each in order."""
    values = [about.get(name, otherwise[name]) for name in Case._fields]
    return list(
        itertools.starmap(Case, itertools.product(*(one if isinstance(one, list) else [one] for one in values)))
    )


@dataclass
class Judged:
    """What the checks of a claim have found: how far each figure is off as a share, and which runs are missing."""

    replay: Replay
    texts: list[str] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def check(self, check: Mapping[str, Any]) -> None:
        """Judge one check."""
        said: Any = check.get("said")
        cases = cases_of({"device": list(said), **check} if isinstance(said, dict) else check, DEFAULTS)
        if "alike" in check:
            return self.check_alike(cases)
        found: dict[Case, float] = {}
        for case in cases:
            try:
                found[case] = check.get("times", 1.0) * figure_of(self.replay, case) / self.under(case, check)
            except AbsentError as error:
                self.missing.append(str(error))
        together = {"least", "greatest", "ascending", "similar"} & check.keys()
        if not found or (together and len(found) < 2):
            return None
        self.off += [0.0 if is_so else math.inf for is_so in truths(check, found)]
        for case, value in found.items() if said else ():
            of_case = said[case.device] if isinstance(said, dict) else said
            low, high = of_case if isinstance(of_case, list) else [of_case] * 2
            self.off.append(max(low / value if value else math.inf, value / high, 1.0) - 1)
        unit = next((unit for ending, unit in UNITS.items() if cases[0].measure.endswith(ending)), "")
        text = listed(
            {case.within(cases): value for case, value in found.items()}, " times" if "over" in check else unit
        )
        self.texts.append(f"{check['text']}: {text}" if "text" in check else text)
        return None

    def under(self, case: Case, check: Mapping[str, Any]) -> float:
        """What the figure of a case is divided by: the least of what is known."""
        if "over" not in check:
            return 1.0
        found, missing = [], []
        for other in cases_of(check["over"], case._asdict()):
            try:
                found.append(figure_of(self.replay, other))
            except AbsentError as error:
                missing.append(error)
        if not found:
            raise missing[0]
        if not min(found):
            raise AbsentError(f"{case.measure} of {case.device} has nothing to be divided by")
        self.missing += map(str, missing)
        return min(found)

    def check_alike(self, cases: Sequence[Case]) -> None:
        """Judge whether two conditions have the same makespan."""
        from scipy.stats import ttest_ind

        try:
            times = [[math.log(run.makespan_s) for run in steady(runs_of(self.replay, case))] for case in cases]
        except AbsentError as error:
            self.missing.append(str(error))
            return
        means = " and ".join(figure(math.exp(statistics.fmean(some))) for some in times)
        text = f"{cases[0].device.partition(', ')[0]} {means} s"
        if min(map(len, times)) < 2:
            self.missing.append(f"{text}: too few repetitions to tell")
            return
        test = ttest_ind(*times, equal_var=False)
        low, high = (math.exp(end) for end in test.confidence_interval())
        text += f" (p = {figure(test.pvalue)}, ratio {figure(low)} to {figure(high)})"
        self.texts.append(text)
        if test.pvalue < SIGNIFICANT:
            self.off.append(math.inf)
        elif max(1 / low, high) <= 1 + AGREES:
            self.off.append(0.0)
        else:
            self.missing.append(f"too few repetitions to tell of {cases[0].device.partition(', ')[0]}")

    @property
    def row(self) -> Row:
        """Figures and verdict. While some have no run, a claim can be contradicted, and does not hold yet."""
        missing = list(dict.fromkeys(self.missing))
        if not self.off:
            verdict = UNKNOWN
        elif max(self.off) <= AGREES:
            verdict = UNKNOWN if missing else HOLDS
        else:
            verdict = CONTRADICTED if min(self.off) > NEAR else PARTLY
        return {"found": "; ".join([*self.texts, *missing]), "verdict": verdict}


def truths(check: Mapping[str, Any], found: Mapping[Case, float]) -> list[bool]:
    """What is expected of the figures but for what was said, each true or not."""
    is_so = [value > check.get("above", -math.inf) for value in found.values()] if "above" in check else []
    is_so += [value < check["below"] for value in found.values()] if "below" in check else []
    is_so += [max(found.values()) < check["similar"] * min(found.values())] if "similar" in check else []
    for _, group in itertools.groupby(found, key=lambda case: case[:-1]):
        values = {case.device: found[case] for case in group}
        for name, end in (("least", min), ("greatest", max)):
            if check.get(name) in values:
                is_so.append(end(values.values()) == values[check[name]])
        is_so += [list(values.values()) == sorted(values.values())] if "ascending" in check else []
    return is_so


def figure(value: float) -> str:
    """A figure with about three significant digits.

    >>> figure(12.004), figure(0.9876), figure(439.7)
    ('12.0', '0.99', '440')
    """
    return number(value, 0 if value >= 99.95 else 2 if value < 9.995 else 1)


def listed(found: Mapping[str, float], unit: str = "") -> str:
    """Cases with their figures.

    >>> listed({"DRAM": 7.63, "SSD": 247.0}, " s")
    'DRAM: 7.63 s; SSD: 247 s'
    """
    return "; ".join(f"{f'{name}: ' if name else ''}{figure(value)}{unit}" for name, value in found.items())


def claim_rows(replay: Replay) -> list[Row]:
    """Rows of ``published_claims.tsv``, in the order of the paper."""
    rows = []
    for claim in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))["claims"]:
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
