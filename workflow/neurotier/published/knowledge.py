"""What the measured member of the model knows about a condition, each figure with its source.

Nothing is fitted. What the logs of the device show under load is taken from the logs (:mod:`neurotier.model.loaded`).
What they do not show is taken from Table I, from the device's data sheet, or from how such a device is known to work.

- **Memory** (DRAM, Optane in Memory mode): reading and writing are copies by the processors, so both share one pool of
  bandwidth, which is taken from the busier part of the time; a stream is as fast as the program.
- **Memory mode with more data than its DRAM holds**: each block is used once, so none is found in DRAM. Blocks are read
  with the modules' bandwidth for 64 bytes at a time, which is how the DRAM is filled.
- **App Direct** and **network**: the bandwidths while only reads or only writes are in flight, and what remains of them
  while both are, when tasks also wait for small requests behind the blocks of others. A network tier without any known
  run is taken to alternate between the two (half duplex), as a link with a single queue does.
- **SSD**: Table I, and the kernel's write-back settings.
- **Spark**: one JVM reads whole files and ships them; it pauses for garbage collection in proportion to the data in
  flight, and so to the number of processes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.bigbrain.tasks import SPARK
from neurotier.core.configuration import read_yaml
from neurotier.core.kinds import KINDS
from neurotier.core.parallelism import gaps_s
from neurotier.core.quantities import percent
from neurotier.core.tables import Rows
from neurotier.model.loaded import BUSIER, FASTEST, Loaded, Stream, loaded, pooled, unevenness
from neurotier.model.machine import LAUNCH, Machine, PageCache, Processors, Step, TierSpeed, Workload, cache_of
from neurotier.published.bigbrain import HEADER, INCREMENT, TASK, WRITE, BlockRun
from neurotier.published.conditions import (
    EXPERIMENT,
    OPTANE_AS_MEMORY,
    PLACES,
    STALLED,
    device_and_mode,
    device_of,
    without_outliers,
)
from neurotier.published.replay import Replay
from neurotier.storage.table_one import bytes_per_s

if TYPE_CHECKING:
    from pandas import DataFrame

SOURCES: dict[str, list[str]] = read_yaml(Path(__file__).with_name("parameters.yaml").read_text(encoding="utf-8"))
"""Name, unit, origin and source of a parameter, by how it is known."""

SERVER: dict[str, Any] = EXPERIMENT["server"]

PAUSE = 4.0
"""The JVM paused where a gap between blocks is this many times the mean; by chance, that is one gap in 55 (e^-4)."""

FASTEST_WAVES = 0.95
"""If something else limits a Spark run, its fastest twentieth of waves shows what the JVM can ship."""

OTHERS_COUNT = 0.5
"""Weight of runs with another number of processes, relative to those with the same number."""

DEVICE_LIMITS = 0.5
"""If a Spark run reaches this share of what the device gives, the device limits it, not the JVM."""

MOST_MIXED = 2.0
"""Most that a tier can do while it reads and writes at once: both at the speed of either alone."""

WIDTH_UNKNOWN = 2.0
"""Factor of an interval if no other condition shows how good the model is."""

CHOSEN = (
    f"a run with another number of processes than the predicted one counts {OTHERS_COUNT}, one with the same number 1",
    f"what memory gives is the mean over the busier {percent(BUSIER)} of the time",
    f"a program's own speed is what its fastest {percent(1 - FASTEST)} of streams reach",
    f"the JVM stands still where the gap between two blocks is more than {PAUSE:g} times the mean gap",
    f"a device limits a run of Spark that reaches {percent(DEVICE_LIMITS)} of what the device gives",
    f"the fastest {percent(1 - FASTEST_WAVES)} of waves then show what the JVM can ship",
    f"a tier that reads and writes at once does at most {MOST_MIXED:g} times what it does with reads or writes alone",
    f"an interval is a factor of {WIDTH_UNKNOWN:g} wide, either way, where no other condition shows its width",
    f"a repetition that takes {STALLED:g} times as long as the median, or as much less, is left out",
)
"""The values that were chosen, once for all conditions, in words."""

DEVICE, JVM = "device", "JVM"
"""The model's tiers: the device, and the JVM, which ships blocks to Python."""

WAYS = "read", "write"


class Shipping(NamedTuple):
    """What runs of Spark show of its JVM, which reads whole files and ships them to Python.

    Attributes
    ----------
    first_s
        Time from the start of the driver to the first phase of a block, s, in which the first wave is shipped.
    bytes_per_s
        What it shipped on average after the first wave.
    fastest_bytes_per_s
        What it shipped in the fastest waves.
    pauses
        Share of the time in which it shipped nothing.
    load_s, increment_s
        Median time to make an image of a block, and to increment it, s.
    """

    first_s: float
    bytes_per_s: float
    fastest_bytes_per_s: float
    pauses: float
    load_s: float
    increment_s: float


def evidence_of(replay: Replay) -> DataFrame:
    """What the runs show about each of the paper's conditions on a known device, with a row for each condition.

    Each condition is read separately, so that what is learned without a condition cannot depend on it. The columns are
    those of :class:`Loaded`; ``unevenness`` (of the streams); those of :class:`Shipping`; and ``launch_s``, the time
    from the end of a process to the first row of its successor, s, which starts Python and its libraries. With Spark,
    only the work of the JVM is known, because no row of the logs shows its reading.
    """
    from pandas import DataFrame

    known = [one for one in replay.conditions if not one.variant and one.tier in PLACES]
    columns = [*Loaded._fields, "unevenness", "launch_s", *Shipping._fields]
    shown = [read_evidence(without_outliers(replay.conditions[one])) for one in known]
    return DataFrame(shown, known, columns, dtype=float)


def read_evidence(runs: Sequence[BlockRun]) -> dict[str, float | None]:
    """What the repetitions of a condition, given without outliers, show."""
    if runs[0].condition.engine == SPARK:
        shown = list(filter(None, map(shipping_in, runs)))
        return dict(zip(Shipping._fields, map(statistics.fmean, zip(*shown, strict=True)), strict=bool(shown)))
    if not all(run.named(INCREMENT) and run.named(WRITE) for run in runs):
        return {}
    observed = [streams_of(run) for run in runs]
    launches_s = [one_s for one_s in map(launch_s, runs) if one_s is not None]
    launching_s = statistics.median(launches_s) if launches_s else None
    return {**pooled(map(loaded, observed)), "unevenness": unevenness(observed), "launch_s": launching_s}


def streams_of(run: BlockRun) -> list[Stream]:
    """The streams that read from the device and wrote to it; NiBabel reads a block when it is incremented."""
    return [Stream(phase.name == WRITE, run.block_bytes, *phase.span) for phase in run.named(INCREMENT, WRITE)]


def launch_s(run: BlockRun) -> float | None:
    """The time from the end of a process to the start of its successor, s; ``None`` if no process had a successor."""
    gaps = gaps_s([task.span for task in run.named(TASK)], run.condition.parallelism)
    return max(statistics.median(gaps), 0.0) if gaps else None


def shipping_in(run: BlockRun) -> Shipping | None:
    """What one run shows about the JVM: a block has been shipped when Python begins with it; ``None`` if too short."""
    wave, made = run.condition.parallelism, run.named(HEADER)
    starts = np.sort([phase.start_s for phase in made])
    if len(starts) <= 2 * wave or starts[-1] <= starts[wave]:
        return None
    gaps, waves_s = np.diff(starts[wave:]), starts[wave:] - starts[:-wave]
    return Shipping(
        first_s=float(starts[0]),
        bytes_per_s=float(len(gaps) * run.block_bytes / gaps.sum()),
        fastest_bytes_per_s=float(wave * run.block_bytes / np.quantile(waves_s, 1 - FASTEST_WAVES)),
        pauses=float(gaps[gaps > PAUSE * gaps.mean()].sum() / gaps.sum()),
        load_s=statistics.median(phase.duration_s for phase in made),
        increment_s=statistics.median(phase.duration_s for phase in run.named(INCREMENT)),
    )


class Jvm(NamedTuple):
    """What Spark's JVM does at a number of processes.

    Attributes
    ----------
    first_s
        Time until the first wave has been shipped, including the start of the session, s.
    bytes_per_s
        What it ships after that.
    load_s, increment_s
        Time to make an image of a block, and to increment it, s.
    """

    first_s: float
    bytes_per_s: float
    load_s: float
    increment_s: float


@dataclass(frozen=True)
class Knowledge:
    """What the model is given for a condition; ``jvm`` is ``None`` without Spark, or if no run of Spark is known.

    Attributes
    ----------
    parameters
        Each figure with its source, with the columns of ``published_parameters.tsv``.
    """

    tier: TierSpeed
    memory: TierSpeed
    launch_s: float
    jvm: Jvm | None
    parameters: Rows = field(compare=False)


@dataclass
class Learner:
    """Learns what can be known about one condition, and records each figure.

    Parameters
    ----------
    condition
        The condition to be predicted.
    evidence
        What may be known (:func:`evidence_of`); nothing else about the runs is used.
    replay
        The replay, used for Table I.
    """

    condition: IncrementCondition
    evidence: DataFrame
    replay: Replay
    parameters: Rows = field(default_factory=list)

    @cached_property
    def printed(self) -> tuple[TierSpeed, TierSpeed]:
        """The condition's device by Table I, and the memory to which its writes go first.

        For Optane in Memory mode, the benchmark of tmpfs in that mode is used, which is not in the printed table.
        """
        table, tier = self.replay.table_one_mb_s, self.condition.tier
        own = self.replay.measured_mb_s.get(tier, table[device_and_mode(tier)[0]])
        return by_table(PLACES[tier], *own), by_table("tmpfs", *table["DRAM"])

    def note(self, how: str, value: float, *shown: object) -> float:
        """Record a figure, how it is known, and what shows it; return the figure."""
        name, unit, origin, source = SOURCES[how]
        about = {"unit": unit, "origin": origin, "source": source.format(*shown, **SERVER)}
        self.parameters.append({"name": name, "value": float(value), **about})
        return float(value)

    def learn(self) -> Knowledge:
        """Learn everything about the condition."""
        tier, (_, memory) = self.tier(), self.printed
        if tier.write_back:
            cache, fastest = page_cache(self.condition), self.fastest()[1]
            memory = replace(memory, write_stream_bytes_per_s=self.note("page cache stream", fastest))
            self.note("page cache", memory.write_bytes_per_s)
            self.note("background", cache.background_bytes)
            self.note("throttling", cache.throttling_bytes)
            self.note("expiry", cache.expiry_s)
        spark = self.condition.engine == SPARK
        launch_s, jvm = (0.0, self.jvm(tier.read_bytes_per_s)) if spark else (self.launch_s(), None)
        return Knowledge(tier, memory, launch_s, jvm, self.parameters)

    def has_as_many(self, one: IncrementCondition) -> bool:
        """Whether a condition has as many processes as the one to be predicted."""
        return one.parallelism == self.condition.parallelism

    def is_on_device(self, one: IncrementCondition) -> bool:
        """Whether a condition is on the device of the one to be predicted."""
        return device_of(one) == device_of(self.condition)

    @cached_property
    def streams(self) -> DataFrame:
        """The conditions whose streams are known."""
        return self.evidence.dropna(subset="unevenness")

    @cached_property
    def own(self) -> DataFrame:
        """The conditions with known streams on this condition's device."""
        return rows_where(self.streams, self.is_on_device)

    def fastest(self) -> tuple[float, float]:
        """What one process reads and writes at most, bytes/s, limited mostly by its own processing."""
        seen, (_, memory) = rows_where(self.streams, fits_cores), self.printed
        if seen.empty:
            return memory.read_stream_bytes_per_s, memory.write_stream_bytes_per_s
        return float(seen.fastest_read_bytes_per_s.max()), float(seen.fastest_write_bytes_per_s.max())

    def weighted(self, own: DataFrame) -> Any:
        """Average conditions into one; those with another number of processes count less."""
        return pooled(own, [1.0 if self.has_as_many(one) else OTHERS_COUNT for one in own.index])

    def tier(self) -> TierSpeed:
        """The speeds of the device."""
        kind = PLACES[self.condition.tier]
        speed = {"tmpfs": self.memory_tier, "block": self.disk_tier}.get(kind, self.shared_tier)()
        seen, how = (self.streams, "unevenness of others") if self.own.empty else (self.own, "unevenness")
        unevenness = statistics.fmean([*seen.unevenness] or [0.0])
        return replace(speed, unevenness=self.note(how, unevenness, conditions_text(self.own)))

    def memory_tier(self) -> TierSpeed:
        """The speeds of DRAM, or of Optane in Memory mode."""
        cached = rows_where(self.own, lambda one: not exceeds_cache(one))
        if len(cached):
            pool = self.note("pool", cached.most_bytes_per_s.max(), conditions_text(cached))
        else:
            printed, _ = self.printed
            pool = self.note("printed pool", 2 / (1 / printed.read_bytes_per_s + 1 / printed.write_bytes_per_s))
        alone = rows_where(cached, fits_cores)
        seen, how = (pooled(alone).filter(like="stream_"), "stream") if len(alone) else (self.fastest(), "fastest")
        read, write = (
            self.note(f"{how} {way}", value, conditions_text(alone)) for way, value in zip(WAYS, seen, strict=True)
        )
        if not exceeds_cache(self.condition):
            return TierSpeed(pool, pool, read, write, self.note("mixed in memory", 1.0))
        mixed = self.note("mixed beyond DRAM", MOST_MIXED)
        return TierSpeed(self.missed_bytes_per_s(), pool, read, write, mixed)

    def missed_bytes_per_s(self) -> float:
        """The bandwidth with which Memory mode reads when nothing is in its DRAM, bytes/s."""
        if len(beyond := rows_where(self.own, exceeds_cache)):
            return self.note("missed read", self.weighted(beyond).mixed_read_bytes_per_s, conditions_text(beyond))
        fetch, write_back = (SERVER["modules"] * one for one in SERVER["module_bytes_per_s"])
        return self.note("missed read by its sheet", 1 / (2 / fetch + 1 / write_back))

    def disk_tier(self) -> TierSpeed:
        """The speeds of the local SSD: a single stream saturates it, so Table I holds for many streams, too."""
        printed, _ = self.printed
        self.note("disk read", printed.read_bytes_per_s)
        self.note("disk write", printed.write_bytes_per_s)
        return replace(printed, mixed=self.note("mixed on disk", 1.0))

    def shared_tier(self) -> TierSpeed:
        """The speeds of Optane in App Direct mode, or of Isilon."""
        (printed, _), own = self.printed, self.own
        speeds, mixed = [printed.read_bytes_per_s, printed.write_bytes_per_s], 1.0
        if own.empty:
            speeds = [self.note(f"printed {way}", speed) for way, speed in zip(WAYS, speeds, strict=True)]
            self.note("mixed of nothing known", mixed)
        else:
            seen, runs = self.weighted(own), conditions_text(own)
            speeds = [
                self.note(way, np.nan_to_num(seen[f"{way}_bytes_per_s"], nan=speed), seen[f"{way}_only_s"], runs)
                for way, speed in zip(WAYS, speeds, strict=True)
            ]
            mixed = self.note("mixed", min(np.nan_to_num(seen.mixed, nan=mixed), MOST_MIXED), runs)
        speeds += [self.note(f"fastest {way}", speed) for way, speed in zip(WAYS, self.fastest(), strict=True)]
        return TierSpeed(speeds[0], speeds[1], speeds[2], speeds[3], mixed)

    def launch_s(self) -> float:
        """Time to start a process with GNU Parallel, s: Python and its libraries take the same on every device."""
        found = self.evidence.dropna(subset="launch_s")
        if found.empty:
            return self.note("launch of nothing known", 0.0)
        some = rows_where(found, fits_cores, found)
        return self.note("launch", some.launch_s.median(), len(some))

    def jvm(self, read_bytes_per_s: float) -> Jvm | None:
        """What the JVM does at the condition's number of processes; ``None`` if no run of Spark is known."""
        found = self.evidence.dropna(subset="first_s")
        if found.empty:
            return None
        ships = self.ships_bytes_per_s(found)
        own = rows_where(found, self.is_on_device, found)
        own = rows_where(own, self.has_as_many, own)
        per_process_s = statistics.geometric_mean(own.first_s / [one.parallelism for one in own.index])
        first_s = self.note("first wave", per_process_s * self.condition.parallelism, spark_words(own))
        reading_s = self.condition.parallelism * self.condition.block_bytes / self.condition.blocks / read_bytes_per_s
        if reading_s > first_s:
            first_s = self.note("first wave on the device", reading_s)
        load_s = self.note("image", found.load_s.mean(), spark_words(found))
        return Jvm(first_s, ships, load_s, self.note("increment", found.increment_s.mean(), spark_words(found)))

    def ships_bytes_per_s(self, found: DataFrame) -> float:
        """The bandwidth with which the JVM ships blocks, bytes/s.

        It is the mean of the runs with as many processes that the JVM limits. If there are none, it is the geometric
        mean of up to two estimates: the fastest waves of the runs with as many processes, and what runs with another
        number of processes ship, with pauses that grow with the number of blocks in flight.
        """
        limited = rows_where(found, lambda one: not self.device_limits(one, found.bytes_per_s[one]))
        if len(same := rows_where(limited, self.has_as_many)):
            return self.note("ships", same.bytes_per_s.mean(), spark_words(same))
        how, estimates, shown = "ships", [], list[str]()
        if len(held_up := rows_where(found, self.has_as_many, found if limited.empty else None)):
            estimates.append(held_up.fastest_bytes_per_s.max())
            how += " in the fastest waves"
            shown.append(spark_words(held_up))
        if len(limited):
            more = self.condition.parallelism / statistics.fmean(one.parallelism for one in limited.index)
            pauses = limited.pauses.mean()
            estimates.append(limited.bytes_per_s.mean() / (1 - pauses + pauses * more))
            how += " with pauses"
            shown += [spark_words(limited), percent(pauses)]
        return self.note(how, statistics.geometric_mean(estimates), *shown)

    def device_limits(self, one: IncrementCondition, bytes_per_s: float) -> bool:
        """Whether a Spark run reached so much of its device's bandwidth that the device limited it."""
        speed = Learner(one, self.evidence, self.replay).tier()
        one_way_s = 1 / speed.read_bytes_per_s, 1 / speed.write_bytes_per_s
        return bytes_per_s * max(sum(one_way_s) / speed.mixed, *one_way_s) > DEVICE_LIMITS


def by_table(kind: str, read_mb_s: float, write_mb_s: float) -> TierSpeed:
    """The speeds of a tier from Table I alone, which has one stream of ``dd``; a tmpfs is spread over all modules."""
    devices = SERVER["modules"] if kind == "tmpfs" else 1
    read, write = bytes_per_s(read_mb_s), bytes_per_s(write_mb_s)
    return TierSpeed(read * devices, write * devices, read, write, write_back=KINDS[kind].write_back)


def rows_where(
    found: DataFrame, are: Callable[[IncrementCondition], bool], otherwise: DataFrame | None = None
) -> DataFrame:
    """The rows of the conditions for which ``are`` is true; if there are none, ``otherwise``, if given."""
    some = found[found.index.map(are).astype(bool)]
    return otherwise if some.empty and otherwise is not None else some


def fits_cores(condition: IncrementCondition) -> bool:
    """Whether every process had a core of its own, so that its streams show what the program can do."""
    return condition.parallelism <= int(SERVER["cores"])


def exceeds_cache(condition: IncrementCondition) -> bool:
    """Whether a condition reads and writes more in Optane's Memory mode than the DRAM there can hold."""
    return condition.tier == OPTANE_AS_MEMORY and 2 * condition.block_bytes > int(SERVER["dram_bytes"])


def conditions_text(own: DataFrame) -> str:
    """A short text on the conditions of a device: resolution and processes, without duplicates."""
    return ", ".join(dict.fromkeys(f"{one.resolution_um} um with {one.parallelism}" for one in own.index))


def spark_words(found: DataFrame) -> str:
    """A short text on conditions with Spark."""
    return ", ".join(f"{one.tier} with {one.parallelism}" for one in found.index)


def page_cache(condition: IncrementCondition) -> PageCache:
    """The page cache in the condition's mode of Optane."""
    return PageCache(1024.0 * SERVER["available"][device_and_mode(condition.tier)[1]], **SERVER["write_back"])


def situation(condition: IncrementCondition, given: Knowledge) -> tuple[Workload, Machine]:
    """The workload and the machine of a condition.

    How fast two threads on one core are does not matter, since no process computes for long.
    """
    size, jvm = condition.block_bytes / condition.blocks, given.jvm
    tiers = {DEVICE: given.tier, cache_of(DEVICE): given.memory}
    machine = Machine(Processors(SERVER["cores"], SERVER["threads"]), page_cache(condition), tiers)
    read, write = Step(INCREMENT, "read", size, DEVICE), Step(WRITE, "write", size, DEVICE)
    if jvm is None:
        return Workload([(Step(LAUNCH, "compute", given.launch_s), read, write)] * condition.blocks), machine
    ships = jvm.bytes_per_s
    tiers[JVM] = TierSpeed(ships, ships, ships, ships)
    work = (Step(HEADER, "compute", jvm.load_s), Step(INCREMENT, "compute", jvm.increment_s), write)
    first = (Step("first wave", "wait", jvm.first_s), *work)
    later = (Step("ship", "read", size, DEVICE), Step("ship", "read", size, JVM), *work)
    waves = min(condition.parallelism, condition.blocks)
    return Workload([first] * waves + [later] * (condition.blocks - waves)), machine
