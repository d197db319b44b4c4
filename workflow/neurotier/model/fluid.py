"""Member ``fluid`` of the model: tasks as fluid that flows through shared processors and tiers.

At every moment each busy task has a rate. Streams on a tier share its loaded bandwidth, none faster than one stream can
be; processes that compute share the processors. Writes to a tier with write-back go to memory, as long as not too much
is dirty; what has been dirty for too long, or is too much, is written back meanwhile and takes its share of the
device from those who read. Rates change only when something begins or ends, so time goes from one such event to the
next: 1,000 tasks are some thousand steps.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np

from neurotier.model.machine import Machine, cache_of
from neurotier.model.sharing import Demand, share_out, split, wanted
from neurotier.model.workload import LAUNCH, Job, Step, Workload
from neurotier.model.write_back import RELATIVE, Dirty


@dataclass(frozen=True)
class SimulatedRun:
    """What came out of a simulation.

    Parameters
    ----------
    makespan_s
        Last end - first start, s.
    spans_s
        Every step of every task that took time: (task, phase, start, end), s.
    limits
        What the tasks' time went by, as parts of one: ``processors``, ``launch``, ``wait``, a tier's direction such as
        ``disk read``, or ``one stream on disk``, when a tier had more to give than its streams could take.
    """

    makespan_s: float
    spans_s: list[tuple[int, str, float, float]]
    limits: dict[str, float]

    @property
    def limit(self) -> str:
        """What most of the tasks' time went by."""
        return max(self.limits, key=lambda name: self.limits[name], default="")

    @property
    def phase_sums_s(self) -> dict[str, float]:
        """Seconds of all tasks by phase."""
        sums = defaultdict[str, float](float)
        for _, phase, start_s, end_s in self.spans_s:
            sums[phase] += end_s - start_s
        return dict(sums)

    @property
    def mean_parallelism(self) -> float:
        """Sum of all phases / makespan."""
        return sum(self.phase_sums_s.values()) / self.makespan_s if self.makespan_s else 0.0


@dataclass(eq=False)
class Flow:
    """Streams that are alike: same step but for the amount.

    ``moved`` is what each of its streams has moved, had it been there from the beginning; a stream is over when that
    reaches what it was at its own start plus its amount. So nothing has to be kept per stream while it flows.

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
    ends: list[tuple[float, int]] = field(default_factory=list)

    @property
    def streams(self) -> int:
        return len(self.ends)

    def add(self, task: int, amount: float) -> None:
        heapq.heappush(self.ends, (self.moved + amount, task))

    def until_next_s(self) -> float:
        """Seconds until the first of its streams is over, at the present rate."""
        return max(self.ends[0][0] - self.moved, 0.0) / self.rate if self.rate > 0 else math.inf

    def advance(self, elapsed_s: float) -> list[int]:
        """Flow for some seconds; the tasks whose stream is over."""
        self.moved += self.rate * elapsed_s
        reached = self.moved + RELATIVE * max(self.moved, self.rate)
        over = []
        while self.ends and self.ends[0][0] <= reached:
            over.append(heapq.heappop(self.ends)[1])
        return over


def simulate(workload: Workload, machine: Machine, parallelism: int, seed: int = 0) -> SimulatedRun:
    """Let a machine work on a workload, so many tasks at once.

    Parameters
    ----------
    seed
        Draws which streams are slower than others, on tiers that are uneven.

    Raises
    ------
    KeyError
        If a step names a tier that the machine has not.
    ValueError
        If a tier that is needed has no speed at all.
    """
    return Simulation(workload, machine, parallelism, seed).run()


class Simulation:
    """The state of one simulation."""

    def __init__(self, workload: Workload, machine: Machine, parallelism: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.jobs = [Job((task,)) for task in range(len(workload.tasks))] if workload.jobs is None else workload.jobs
        # behind the tasks: what each job does before its tasks, and what is fetched
        launches = [tuple(job.launch) for job in self.jobs]
        self.first_launch, self.first_fetch = len(workload.tasks), len(workload.tasks) + len(launches)
        self.tasks = [*workload.tasks, *launches, *workload.fetches]
        self.job_of = {task: number for number, job in enumerate(self.jobs) for task in job.tasks}
        self.left = [len(job.tasks) for job in self.jobs]
        self.machine = machine
        self.parallelism = self.free = parallelism
        self.now_s = 0.0
        self.next_job = 0
        self.next_fetch, self.free_fetches = self.first_fetch, workload.fetches_at_once
        self.fetched = set[int]()
        self.waiting_for = dict[int, int]()
        self.free_slots = {(job, phase): n for job, of in enumerate(self.jobs) for phase, n in of.slots.items()}
        self.queues = {key: deque[int]() for key in self.free_slots}
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.position = dict[int, int]()
        self.began_s = dict[int, float]()
        self.spans: list[tuple[int, str, float, float]] = []
        self.limits = defaultdict[str, float](float)
        self.dirty = {name: Dirty(machine.page_cache) for name, tier in machine.tiers.items() if tier.write_back}

    def run(self) -> SimulatedRun:
        """Go from event to event until every task is over."""
        while self.next_job < len(self.jobs) or self.position:
            self.fetch()
            self.launch()
            flows = [flow for flow in self.flows.values() if flow.ends]
            inflows = self.set_rates(flows)
            elapsed_s = min((flow.until_next_s() for flow in flows), default=math.inf)
            for name, dirty in self.dirty.items():
                elapsed_s = min(elapsed_s, dirty.until_change_s(self.now_s, inflows[name]))
            if math.isinf(elapsed_s):
                raise ValueError(f"nothing moves any more at {self.now_s} s: a speed is 0")
            self.advance(flows, elapsed_s, inflows)
        return self.result()

    def result(self) -> SimulatedRun:
        """What came out; a makespan begins with the first step after a launch, as in the logs."""
        spans = [span for span in self.spans if span[1] != LAUNCH.phase]
        makespan_s = max((span[3] for span in spans), default=0.0) - min((span[2] for span in spans), default=0.0)
        total = sum(self.limits.values())
        limits = {name: seconds / total for name, seconds in self.limits.items()}
        return SimulatedRun(makespan_s, spans, limits)

    def slots(self, job: int) -> int:
        """How many tasks a job counts for; one that is larger than the machine runs alone."""
        return min(self.jobs[job].counts_for or len(self.jobs[job].tasks), self.parallelism)

    def launch(self) -> None:
        """Start the jobs that there is room for."""
        while self.next_job < len(self.jobs) and self.free >= self.slots(self.next_job):
            self.free -= self.slots(self.next_job)
            self.next_job += 1
            self.begin(self.first_launch + self.next_job - 1)

    def fetch(self) -> None:
        """Begin the fetches whose turn has come."""
        while self.free_fetches and self.next_fetch < len(self.tasks):
            self.free_fetches -= 1
            self.next_fetch += 1
            self.begin(self.next_fetch - 1)

    def begin(self, task: int) -> None:
        """Begin a task with its first step."""
        self.position[task] = -1
        self.go_on(task)

    def end(self, task: int) -> None:
        """Go on with what a task was waited for."""
        if task >= self.first_fetch:
            self.free_fetches += 1
            number = task - self.first_fetch + 1
            self.fetched.add(number)
            if number in self.waiting_for:
                self.complete(self.waiting_for.pop(number))
        elif task >= self.first_launch:
            for member in self.jobs[task - self.first_launch].tasks:
                self.begin(member)
        else:
            job = self.job_of[task]
            self.left[job] -= 1
            self.free += 0 if self.left[job] else self.slots(job)

    def complete(self, task: int) -> None:
        """Go on with a task whose step is over."""
        phase = self.tasks[task][self.position[task]].phase
        self.spans.append((task, phase, self.began_s[task], self.now_s))
        self.go_on(task)

    def go_on(self, task: int) -> None:
        """Begin a task's next step that has something to do; without one the task is over."""
        self.began_s[task] = self.now_s
        for position in range(self.position[task] + 1, len(self.tasks[task])):
            step = self.tasks[task][position]
            if step.kind == "arrival":
                if (number := int(step.amount)) not in self.fetched:
                    self.position[task], self.waiting_for[number] = position, task
                    return
            elif step.kind == "take":
                if not self.has_slot(task, step.phase):
                    self.position[task] = position
                    return
            elif step.kind == "give":
                self.give_slot(task, step.phase)
            elif step.amount > 0:
                self.position[task] = position
                self.flow_of(step).add(task, step.amount * self.slowness(step))
                return
        del self.position[task]
        self.end(task)

    def has_slot(self, task: int, phase: str) -> bool:
        """Take a slot of a task's job, if one is free; else the task goes on when it is given one."""
        key = self.job_of[task], phase
        if not self.free_slots[key]:
            self.queues[key].append(task)
            return False
        self.free_slots[key] -= 1
        return True

    def give_slot(self, task: int, phase: str) -> None:
        """Hand the slot of a task on to the one that has waited longest."""
        key = self.job_of[task], phase
        if self.queues[key]:
            self.go_on(self.queues[key].popleft())
        else:
            self.free_slots[key] += 1

    def flow_of(self, step: Step) -> Flow:
        """The flow of all streams that are alike a step; the CPU time of making files is a step of its own."""
        kind = step.phase, step.kind, step.tier, step.cached
        if kind not in self.flows:
            self.flows[kind] = Flow(step, self.server(step))
        return self.flows[kind]

    def slowness(self, step: Step) -> float:
        """How much longer than others a stream takes: 1 on average."""
        spread = self.machine.tiers[self.server(step)].unevenness if step.tier else 0.0
        return math.exp(spread * self.rng.standard_normal() - spread**2 / 2) if spread else 1.0

    def advance(self, flows: list[Flow], elapsed_s: float, inflows: dict[str, float]) -> None:
        """Let everything flow for some seconds, and go on with the tasks whose step is over."""
        for name, dirty in self.dirty.items():
            dirty.advance(self.now_s, elapsed_s, inflows[name])
        self.now_s += elapsed_s
        if self.waiting_for:
            self.limits[LAUNCH.phase] += len(self.waiting_for) * elapsed_s
        over = []
        for flow in flows:
            self.limits[flow.limit] += flow.streams * elapsed_s
            over += flow.advance(elapsed_s)
        for task in sorted(over):
            self.complete(task)

    def set_rates(self, flows: list[Flow]) -> dict[str, float]:
        """Give every flow its rate; what then flows into the page cache, by tier, bytes/s."""
        speed = self.machine.processors.speed(sum([flow.streams for flow in flows if flow.step.kind == "compute"]))
        served, making = defaultdict[str, list[Flow]](list), defaultdict[str, list[Flow]](list)
        for flow in flows:
            if flow.step.kind == "files":
                making[flow.step.tier].append(flow)
            elif flow.step.tier:
                served[flow.server].append(flow)
            else:
                flow.rate = 1.0 if flow.step.kind == "wait" else speed
                flow.limit = {"wait": "wait", "compute": "processors"}[flow.step.kind]
                flow.limit = LAUNCH.phase if flow.step.phase == LAUNCH.phase else flow.limit
        for name in served.keys() | self.dirty.keys():
            self.share_tier(name, served[name])
        for name, makers in making.items():
            self.share_files(name, makers)
        inflows = dict.fromkeys(self.dirty, 0.0)
        for name, dirty in self.dirty.items():
            writers = [flow for flow in flows if flow.server == cache_of(name) and flow.step.kind == "write"]
            writers = [flow for flow in writers if not flow.step.cached]
            if dirty.throttles and writers:
                self.throttle(writers, dirty.rate_bytes_per_s, f"{name} write")
            inflows[name] = sum(flow.rate * flow.streams for flow in writers)
        return inflows

    def server(self, step: Step) -> str:
        """The tier that serves a step, or the page cache before it."""
        buffered = step.tier in self.dirty if step.kind == "write" else step.cached
        return cache_of(step.tier) if buffered else step.tier

    def share_tier(self, name: str, flows: list[Flow]) -> None:
        """Share a tier among the streams that it serves, and write-back."""
        tier = self.machine.tiers[name]
        demands = {"read": list[Demand](), "write": list[Demand]()}
        for flow in flows:
            reads = flow.step.kind == "read"
            cap = tier.read_stream_bytes_per_s if reads else tier.write_stream_bytes_per_s
            loaded = tier.read_bytes_per_s if reads else tier.write_bytes_per_s
            demands[flow.step.kind].append(Demand(flow.streams, cap, loaded))
        dirty = self.dirty.get(name)
        is_due = dirty is not None and dirty.is_due(self.now_s)
        reading, writing = split(wanted(demands["read"]), 1.0 if is_due else wanted(demands["write"]), tier.mixed)
        share_out(demands["read"], reading)
        share_out(demands["write"], writing)
        if dirty:
            dirty.rate_bytes_per_s = writing * tier.write_bytes_per_s if is_due else 0.0
        for flow in flows:
            demand = demands[flow.step.kind].pop(0)
            flow.rate = demand.rate_bytes_per_s
            flow.limit = f"one stream on {name}" if demand.is_capped else f"{name} {flow.step.kind}"

    def share_files(self, name: str, flows: list[Flow]) -> None:
        """Share what a tier does for small files among those who make some."""
        tier = self.machine.tiers[name]
        demands = [Demand(flow.streams, tier.files_stream_per_s, tier.files_per_s) for flow in flows]
        share_out(demands, 1.0)
        for flow, demand in zip(flows, demands, strict=True):
            flow.rate, flow.limit = demand.rate_bytes_per_s, f"small files on {name}"

    def throttle(self, writers: list[Flow], rate_bytes_per_s: float, limit: str) -> None:
        """Slow writers down to what is written back."""
        wanted = sum(flow.rate * flow.streams for flow in writers)
        for flow in writers:
            if wanted > rate_bytes_per_s:
                flow.rate *= rate_bytes_per_s / wanted
                flow.limit = limit
