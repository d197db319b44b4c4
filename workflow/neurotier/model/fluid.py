"""Member ``fluid`` of the model: the work of tasks is a fluid that flows through shared processors and tiers.

At every moment each busy task has a rate. Streams on a tier share its loaded bandwidth, none faster than a single
stream can be; processes that compute share the processors. Writes to a tier with write-back go to memory, as long as
not too much is dirty; bytes that have been dirty for too long, or are too many, are written back meanwhile, and take
their share of the device from readers. Rates change only when something begins or ends, so the simulation moves from
one such event to the next: 1,000 tasks take a few thousand steps.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from neurotier.core.parallelism import span_s
from neurotier.core.tables import grouped
from neurotier.model.machine import LAUNCH, Job, Machine, PageCache, Step, Workload, cache_of


def split(reading: float, writing: float, mixed: float) -> tuple[float, float]:
    """The shares of the device's time that reading and writing get, from the shares that they could use.

    The published runs show that each gets half, and that what one does not need goes to the other: on the SSD reading
    fell from 518 to 260 MB/s when write-back began; on Optane in App Direct mode 5 readers moved as much as 20 writers.

    Examples
    --------
    >>> split(2.0, 2.0, mixed=1.0), split(2.0, 0.25, mixed=1.0), split(2.0, 2.0, mixed=2.0), split(2.0, 0.0, mixed=0.5)
    ((0.5, 0.5), (0.75, 0.25), (1.0, 1.0), (1.0, 0.0))
    >>> split(0.25, 3.0, mixed=1.0), split(0.5, 0.25, mixed=1.0), split(3.0, 0.5, mixed=1.5), split(0.25, 3.0, mixed=2)
    ((0.25, 0.75), (0.5, 0.25), (1.0, 0.5), (0.25, 1.0))
    """
    reading, writing = min(reading, 1.0), min(writing, 1.0)
    if not reading or not writing:
        return reading, writing
    for_reading = min(reading, max(mixed / 2, mixed - writing))
    return for_reading, min(writing, mixed - for_reading)


MERGE_S = 0.5
"""Bytes that became dirty within this many seconds of each other are treated as equally old."""

RELATIVE = 1e-9

ENOUGH = 0.9
"""Write-back because of too many dirty bytes ends at this share of the background limit. If it ended at the limit
itself, it would begin again at once, and the simulation would advance in steps of zero length."""


class Dirty:
    """The dirty bytes of one tier, oldest first.

    Attributes
    ----------
    dirty_bytes
        Their sum.
    rate_bytes_per_s
        How fast they are written back now.
    """

    dirty_bytes = rate_bytes_per_s = 0.0
    too_much = False

    def __init__(self, cache: PageCache) -> None:
        self.cache = cache
        self.chunks: deque[list[float]] = deque()

    def is_due(self, now_s: float) -> bool:
        """Whether bytes must be written back, since they are too old or too many."""
        if not self.chunks:
            return False
        limit_bytes = self.cache.background_bytes * (ENOUGH if self.too_much else 1.0)
        self.too_much = self.dirty_bytes > limit_bytes * (1 + RELATIVE)
        return self.too_much or now_s - self.chunks[0][0] >= self.cache.expiry_s * (1 - RELATIVE)

    @property
    def throttles(self) -> bool:
        """Whether writers have to wait for the device."""
        return 0 < self.dirty_bytes >= self.cache.throttling_bytes * (1 - RELATIVE)

    def until_change_s(self, now_s: float, inflow_bytes_per_s: float) -> float:
        """Seconds until write-back starts or stops being due, or writers start or stop being throttled."""
        moments = [math.inf]
        if self.chunks and self.rate_bytes_per_s:
            moments += [] if self.too_much else [self.chunks[0][1] / self.rate_bytes_per_s]
        elif self.chunks:
            moments.append(max(self.chunks[0][0] + self.cache.expiry_s - now_s, 0.0))
        net = inflow_bytes_per_s - self.rate_bytes_per_s
        background_bytes = self.cache.background_bytes
        for level in (background_bytes, ENOUGH * background_bytes, self.cache.throttling_bytes):
            missing = level - self.dirty_bytes
            if missing * net > 0 and abs(missing) > RELATIVE * level:
                moments.append(missing / net * (1 + RELATIVE))
        return min(moments)

    def advance(self, now_s: float, elapsed_s: float, inflow_bytes_per_s: float) -> None:
        """Let bytes come in and be written back for ``elapsed_s``."""
        gone = self.rate_bytes_per_s * elapsed_s
        if inflow_bytes_per_s:
            if not self.chunks or now_s - self.chunks[-1][0] > MERGE_S:
                self.chunks.append([now_s, 0.0])
            self.chunks[-1][1] += inflow_bytes_per_s * elapsed_s
        while self.chunks and gone:
            oldest = self.chunks[0]
            taken = min(gone, oldest[1])
            oldest[1] -= taken
            gone -= taken
            if oldest[1] < 1:
                self.chunks.popleft()
        self.dirty_bytes = sum([chunk[1] for chunk in self.chunks])


@dataclass(frozen=True)
class SimulatedRun:
    """The result of a simulation.

    Parameters
    ----------
    makespan_s
        Last end - first start, s.
    spans_s
        For every step that took time: its task, its phase, its start and its end, s.
    limits
        What the tasks spent their time on, as fractions of their total time: ``processors``, ``launch``, ``wait``, a
        tier and direction such as ``disk read``, or ``one stream on disk``, if a tier could give more than its streams
        could take.
    """

    makespan_s: float
    spans_s: list[tuple[int, str, float, float]]
    limits: dict[str, float]

    @property
    def limit(self) -> str:
        """What the tasks spent most of their time on."""
        return max(self.limits, key=self.limits.__getitem__, default="")

    @property
    def phase_sums_s(self) -> Mapping[str, float]:
        """Seconds of all tasks by phase; 0 for any other phase."""
        sums = defaultdict[str, float](float)
        for _, phase, start_s, end_s in self.spans_s:
            sums[phase] += end_s - start_s
        return sums

    @property
    def mean_parallelism(self) -> float:
        """Sum of all phases / makespan."""
        return sum(self.phase_sums_s.values()) / self.makespan_s if self.makespan_s else 0.0


@dataclass(eq=False)
class Slots:
    """A limited number of slots; processes that get none wait, first come, first served."""

    free: float = 0.0
    queue: deque[tuple[float, Process]] = field(default_factory=deque)


Needs = Iterator["Step | tuple[Slots, float]"]
"""The steps of a process and, in between, the slots that it needs, each with their number."""


@dataclass(eq=False)
class Process:
    """A task, the start of a job, or a fetch: its steps, with the slots that it needs in between."""

    number: int
    needs: Needs
    phase: str = ""
    began_s: float = 0.0


@dataclass(eq=False)
class Flow:
    """Streams whose steps are equal except for their amounts.

    ``moved`` is what a stream would have moved by now if it had existed from the beginning. A stream ends when
    ``moved`` reaches its value at the stream's start plus the stream's amount, so nothing has to be updated per stream
    while it flows.

    Attributes
    ----------
    server
        The tier that serves its streams, if any.
    """

    step: Step
    server: str
    moved: float = 0.0
    rate: float = 0.0
    limit: str = ""
    ends: list[tuple[float, int, Process]] = field(default_factory=list)

    @property
    def streams(self) -> int:
        return len(self.ends)

    def advance(self, elapsed_s: float) -> list[Process]:
        """Flow for some seconds; returns the processes whose streams have ended."""
        self.moved += self.rate * elapsed_s
        reached = self.moved + RELATIVE * max(self.moved, self.rate)
        over = []
        while self.ends and self.ends[0][0] <= reached:
            over.append(heapq.heappop(self.ends)[2])
        return over


def simulate(workload: Workload, machine: Machine, parallelism: int, seed: int = 0) -> SimulatedRun:
    """Simulate a machine that runs a workload, ``parallelism`` tasks at a time.

    Parameters
    ----------
    seed
        Seed for drawing the speeds of streams on tiers whose streams differ.

    Raises
    ------
    KeyError
        If a step names a tier that the machine does not have.
    ValueError
        If a needed tier has a speed of 0.
    """
    return Simulation(workload, machine, parallelism, seed).run()


class Simulation:
    """The state of one simulation."""

    now_s, going = 0.0, 0

    def __init__(self, workload: Workload, machine: Machine, parallelism: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.workload, self.machine, self.parallelism = workload, machine, parallelism
        self.slots, self.fetching = Slots(parallelism), Slots(workload.fetches_at_once)
        self.arrivals = [Slots() for _ in workload.fetches]
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.spans: list[tuple[int, str, float, float]] = []
        self.limits = defaultdict[str, float](float)
        cache = machine.page_cache
        self.dirty = {name: Dirty(cache.before(tier)) for name, tier in machine.tiers.items() if tier.write_back}

    def run(self) -> SimulatedRun:
        """Advance from event to event until every task has ended."""
        tasks = self.workload.tasks
        jobs = self.workload.jobs or [Job((task,)) for task in range(len(tasks))]
        for number, arrival in enumerate(self.arrivals):
            self.begin(len(tasks) + len(jobs) + number, self.fetch(number, arrival))
        for number, job in enumerate(jobs, start=len(tasks)):
            self.begin(number, self.job(job))
        while self.going:
            self.serve(self.fetching)
            self.serve(self.slots)
            flows = [flow for flow in self.flows.values() if flow.ends]
            inflows = self.set_rates(flows)
            moving = (flow for flow in flows if flow.rate)
            elapsed_s = min((max(flow.ends[0][0] - flow.moved, 0.0) / flow.rate for flow in moving), default=math.inf)
            for name, dirty in self.dirty.items():
                elapsed_s = min(elapsed_s, dirty.until_change_s(self.now_s, inflows[name]))
            if self.going and math.isinf(elapsed_s):
                raise ValueError(f"nothing moves any more at {self.now_s} s: a speed is 0")
            self.advance(flows, elapsed_s, inflows)
        total = sum(self.limits.values())
        limits = {name: seconds / total for name, seconds in self.limits.items()}
        return SimulatedRun(span_s([span[2:] for span in self.spans]), self.spans, limits)

    def fetch(self, number: int, arrival: Slots) -> Needs:
        """The needs of a fetch; at its end, the task that waits for it goes on."""
        yield self.fetching, 1
        yield from self.workload.fetches[number]
        self.fetching.free += 1
        arrival.free += 1
        self.limits[LAUNCH] += sum(self.now_s - process.began_s for _, process in arrival.queue)
        self.serve(arrival)

    def job(self, job: Job) -> Needs:
        """The needs of a job's start, after which it begins its tasks; a job that is larger than the machine runs
        alone."""
        first = job.tasks[: job.at_once]
        count = min(len(first), self.parallelism)
        yield self.slots, count
        yield from job.launch
        slots = {phase: Slots(free) for phase, free in job.slots.items()}
        left, waiting = set(job.tasks), iter(job.tasks)

        def tasks() -> Needs:
            for number in waiting:
                for step in self.workload.tasks[number]:
                    if step.kind == "arrival":
                        yield self.arrivals[int(step.amount) - 1], 1
                    elif step.kind == "take":
                        yield slots[step.phase], step.amount
                    elif step.kind == "give":
                        slots[step.phase].free += step.amount
                        self.serve(slots[step.phase])
                    else:
                        yield step
                left.discard(number)
                self.slots.free += 0 if left else count

        for number in first:
            self.begin(number, tasks())

    def begin(self, number: int, needs: Needs) -> None:
        """Begin a process."""
        self.going += 1
        self.go_on(Process(number, needs))

    def go_on(self, process: Process) -> None:
        """Begin the next step of a process that takes time, or queue it for slots; if it needs neither, it has
        ended."""
        process.began_s = self.now_s
        for need in process.needs:
            if isinstance(need, Step):
                if need.amount > 0:
                    process.phase, flow = need.phase, self.flow_of(need)
                    amount = need.amount * self.slowness(flow.server)
                    heapq.heappush(flow.ends, (flow.moved + amount, process.number, process))
                    return
                continue
            slots, count = need
            if slots.queue or slots.free < count:
                slots.queue.append((count, process))
                return
            slots.free -= count
        self.going -= 1

    def serve(self, slots: Slots) -> None:
        """Let those processes go on for which there are slots now."""
        while slots.queue and slots.free >= slots.queue[0][0]:
            count, process = slots.queue.popleft()
            slots.free -= count
            self.go_on(process)

    def flow_of(self, step: Step) -> Flow:
        """The flow that contains a step's stream; it is served by a tier, or by the page cache in front of it."""
        kind = step.phase, step.kind, step.tier, step.cached
        if kind not in self.flows:
            buffered = step.tier in self.dirty if step.kind == "write" else step.cached
            self.flows[kind] = Flow(step, cache_of(step.tier) if buffered else step.tier)
        return self.flows[kind]

    def slowness(self, server: str) -> float:
        """A random factor for how long a stream takes compared with others: 1 on average."""
        spread = self.machine.tiers[server].unevenness if server else 0.0
        return math.exp(spread * self.rng.standard_normal() - spread**2 / 2) if spread else 1.0

    def advance(self, flows: list[Flow], elapsed_s: float, inflows: dict[str, float]) -> None:
        """Let all flows move for some seconds, and go on with the processes whose steps have ended."""
        for name, dirty in self.dirty.items():
            dirty.advance(self.now_s, elapsed_s, inflows[name])
        self.now_s += elapsed_s
        over = []
        for flow in flows:
            self.limits[flow.limit] += flow.streams * elapsed_s
            over += flow.advance(elapsed_s)
        for process in sorted(over, key=lambda one: one.number):
            if process.phase != LAUNCH:
                self.spans.append((process.number, process.phase, process.began_s, self.now_s))
            self.go_on(process)

    def set_rates(self, flows: list[Flow]) -> dict[str, float]:
        """Set the rate of every flow; returns what then flows into the page cache, by tier, bytes/s."""
        speed = self.machine.processors.speed(sum([flow.streams for flow in flows if flow.step.kind == "compute"]))
        served = grouped((flow.server, flow) for flow in flows)
        for flow in served.pop("", []):
            flow.rate, flow.limit = (1.0, "wait") if flow.step.kind == "wait" else (speed, "processors")
            if flow.step.phase == LAUNCH:
                flow.limit = LAUNCH
        for name in dict.fromkeys([*self.dirty, *served]):
            self.share_tier(name, served.get(name, []))
        inflows = {}
        for name, dirty in self.dirty.items():
            cache = served.get(cache_of(name), [])
            writers = [flow for flow in cache if flow.step.kind == "write" and not flow.step.cached]
            inflow = sum(flow.rate * flow.streams for flow in writers)
            if dirty.throttles and inflow > dirty.rate_bytes_per_s:  # writers wait for what is written back
                for flow in writers:
                    flow.rate *= dirty.rate_bytes_per_s / inflow
                    flow.limit = f"{name} write"
                inflow = dirty.rate_bytes_per_s
            inflows[name] = inflow
        return inflows

    def share_tier(self, name: str, flows: list[Flow]) -> None:
        """Divide a tier among write-back and the streams that it serves; small files have a capacity of their own.

        Streams of one kind have the same highest speed, so each of them gets the same rate.
        """
        tier, dirty = self.machine.tiers[name], self.dirty.get(name)
        speeds = {
            "read": (tier.read_stream_bytes_per_s, tier.read_bytes_per_s),
            "write": (tier.write_stream_bytes_per_s, tier.write_bytes_per_s),
            "files": (tier.files_stream_per_s, tier.files_per_s),
        }
        streams = Counter[str]()
        for flow in flows:
            streams[flow.step.kind] += flow.streams
        for_one = {kind: speeds[kind][0] / speeds[kind][1] for kind in streams}  # share of the device's time
        for_reads, for_writes = (streams[kind] * for_one.get(kind, 0.0) for kind in ("read", "write"))
        is_due = dirty is not None and dirty.is_due(self.now_s)
        reading, writing = split(for_reads, math.inf if is_due else for_writes, tier.mixed)
        parts = {"read": reading, "write": writing, "files": 1.0}
        if dirty:
            dirty.rate_bytes_per_s = writing * tier.write_bytes_per_s if is_due else 0.0
        for flow in flows:
            kind = flow.step.kind
            alone, together = speeds[kind]
            flow.rate = min(for_one[kind], parts[kind] / streams[kind]) * together
            flow.limit = f"one stream on {name}" if flow.rate >= alone * (1 - RELATIVE) else f"{name} {kind}"
            if kind == "files":
                flow.limit = f"small files on {name}"
