"""The pool: the process that fetches and analyses the participants of a share, and then drops their images.

The pool decides in memory which participant goes next, within the resources that Snakemake has granted; nothing is
coordinated through files. Each stage of a participant runs in a child, a fork of this process, so that Python and the
libraries start only once. The pool succeeds when every participant has a record, or a failure that would recur; it
fails when another attempt may do better.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.analysis.activity import how_of, identifier
from neurotier.analysis.brains import Job, Share, files_of
from neurotier.analysis.participant import run_participant
from neurotier.analysis.staging import check_room
from neurotier.analysis.tools import UNKNOWN, make_tool
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import (
    BusyError,
    ContainerError,
    InputError,
    NeurotierError,
    SourceError,
    TierError,
    ToolError,
    may_pass,
)
from neurotier.core.files import Facts, note, read_json, read_json_or_empty, write_json
from neurotier.core.kinds import KINDS, is_in_memory
from neurotier.core.places import Places
from neurotier.core.private import names_in, remove_abandoned, remove_empty
from neurotier.core.processes import (
    current_run,
    end_with_parent,
    fork_process,
    freeze_garbage_collector,
    terminate_forked,
    use_threads,
)
from neurotier.core.quantities import about, counted, first_of
from neurotier.core.tiers import Tier, parse_size, tier_named, tiers_of
from neurotier.dataset.bids import size_of
from neurotier.dataset.commands import datalad_errors
from neurotier.dataset.contents import drop_images, get_images, is_present
from neurotier.dataset.source import is_installed
from neurotier.dataset.validation import refusal_line
from neurotier.meter.measure import Interrupted
from neurotier.meter.own import times_so_far
from neurotier.meter.tree import describe_exit
from neurotier.run.adoption import is_wanted
from neurotier.run.images import placed_image
from neurotier.run.jobs import (
    begin_log,
    ensure_clone,
    keep_failure,
    load_dataset,
    load_settings,
    reporting,
    run_facts,
    say,
)
from neurotier.run.journal import SAY_S, Entry, add_entry, job_note
from neurotier.run.needs import MEGABYTE, Granted, Needs
from neurotier.run.participants import CALIBRATION, Wanted, images_of, key_of, members_of, name_of, selected_in
from neurotier.run.stops import raising_interrupted

OOM_SCORE = 300
"""The ``oom_score_adj`` of a child: when memory is short, the kernel should kill a child and not the pool."""


class Child(NamedTuple):
    """A process that works for one participant.

    Attributes
    ----------
    stage, name
        The stage, and the participant that it works for.
    pid
        Its process ID.
    connection
        Carries its messages; closed when it ends.
    """

    stage: str
    name: str
    pid: int
    connection: Connection


class Children:
    """The children of this process, which must have a single thread; they end with it."""

    def __init__(self) -> None:
        self.running: dict[Connection, Child] = {}

    def start(self, stage: str, name: str, work: Callable[[Connection], int]) -> None:
        """Run ``work`` in a fork of this process; it is given a connection to this process, and returns the exit
        code."""
        ours, theirs = Pipe()

        def run() -> int:
            ours.close()
            with suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
            try:
                with raising_interrupted():
                    return work(theirs)
            except Interrupted as interrupted:
                return interrupted.exit_code

        pid = fork_process(run)
        theirs.close()
        self.running[ours] = Child(stage, name, pid, ours)

    def at(self, stage: str) -> list[str]:
        """Names of the participants whose children are at a stage."""
        return [child.name for child in self.running.values() if child.stage == stage]

    def wait(self) -> Iterator[tuple[Child, Any, int | None]]:
        """Wait until children send something or end; yields each of them with its message or, at its end, its exit
        code.

        Process file descriptors (pidfd) are not used, since some clusters have kernels before 5.3, which lack them.
        """
        for connection in wait(self.running):
            child = self.running[connection]  # type: ignore[index]  # only connections are waited for
            try:
                yield child, child.connection.recv(), None
            except (EOFError, OSError):
                del self.running[child.connection]
                child.connection.close()
                _, status = os.waitpid(child.pid, 0)
                yield child, None, os.waitstatus_to_exitcode(status)


@dataclass
class Turns:
    """Which participants may copy and which may compute, if more are present than may compute; each has one turn at a
    time.

    Attributes
    ----------
    limits
        How many children may have each turn at the same time; empty if none has to wait.
    asked
        The turn that each child has or waits for, in the order of their requests.
    having
        The children that have their turn.
    """

    limits: Mapping[str, int]
    asked: dict[Child, str] = field(default_factory=dict)
    having: set[Child] = field(default_factory=set)

    def ask(self, child: Child, turn: str) -> None:
        """Take a child's turn away, and give it ``turn``, if not empty, once that is free."""
        self.asked.pop(child, None)
        self.having.discard(child)
        if turn:
            self.asked[child] = turn
        for waiting, wanted in self.asked.items():
            taken = sum(self.asked[other] == wanted for other in self.having)
            if waiting not in self.having and taken < self.limits[wanted]:
                self.having.add(waiting)
                with suppress(OSError):  # the child has ended, which the next wait notices
                    waiting.connection.send(wanted)


FETCH, ANALYSE, DROP = "get_images", "analyze_participant", "drop_images"
"""The stages of a participant, as failure records name them."""

ATTEMPTS = 2
"""How often a share is tried at most, if its failures may be temporary."""

RESERVE_BYTES = 100_000_000
"""What git-annex leaves free on a tier by default (``annex.diskreserve``): with less it refuses to fetch."""

NO_COST = {"wall_s": 0.0, "cpu_s": 0.0, "run_queue_s": 0.0, "fetched_files": 0}
"""The cost of fetching if everything is present already."""


class Request(NamedTuple):
    """What a pool is asked to do.

    Attributes
    ----------
    stage
        The last stage of each participant: :data:`FETCH`, :data:`ANALYSE` with all that it requires, or :data:`DROP`
        alone.
    share
        The share whose participants are processed; empty for those in ``only``.
    only
        Participants to analyse, without fetching.
    marker
        File to write at the end.
    analysis
        See :attr:`neurotier.run.plan.Plan.analysis`.
    attempt
        Number of the attempt.
    """

    stage: str = ANALYSE
    share: str = ""
    only: Sequence[str] = ()
    marker: Path | None = None
    analysis: str = ""
    attempt: int = 1


def run_pool(results: Path, request: Request, granted: Granted, log: Path) -> int:
    """Process the participants of a share in a pool; returns the exit code of the process.

    Parameters
    ----------
    results
        Results folder of the run.
    request
        What is to be done, and for which participants.
    granted
        What the job was granted.
    log
        Log of the share; each participant has one of its own.
    """
    settings = load_settings(results)
    places = Places.from_settings(settings)
    names = request.only or members_of(request.share, places)
    on_cluster = run_facts(places).get("elsewhere") is True and request.stage == ANALYSE
    if on_cluster and not is_wanted(places):
        say("neurotier: another run has begun since this job was submitted, so this job does nothing")
        return BusyError.exit_code
    end_with_parent()
    begin_log(log)
    if request.attempt > 1 or (on_cluster and "SLURM_RESTART_COUNT" in os.environ):  # Slurm has requeued this job
        add_entry(places, "again")
    needs = Needs(settings, places, on_cluster)
    concurrency = needs.concurrency((granted.threads or needs.threads) // needs.threads, names)
    at_once = concurrency.at_once
    granted = granted._replace(at_once=at_once, copying=concurrency.copying if request.share else 0)
    pool = Pool(needs, request, granted, log)
    if on_cluster:
        pool.job = job_note(name_of(request.share), names, at_once, at_once * needs.threads)
    pool.note_job()
    left = [name for name in names if request.stage != DROP and not places.record(name).exists()]
    with reporting(places, left, request.stage, log) as result:
        pool.prepare(names, left)
    exit_code = result.exit_code or pool.run()
    if 0 < result.exit_code <= 128:
        pool.exit_codes.update(dict.fromkeys(left, exit_code))
        exit_code = pool.close()
    pool.note_job(exit_code)
    return exit_code


class Pool:
    """The participants of a share, while they are processed.

    Parameters
    ----------
    needs
        Needs of participants; also holds the settings and places of the run, and whether this is a node of a cluster.
    request, granted, log
        See :func:`run_pool`.

    Attributes
    ----------
    placed
        The container image, if there is one.
    share
        What an app may use for one participant.
    activity
        Identifier of how a tool makes derivatives, if these refer to it (:mod:`neurotier.analysis.activity`).
    job
        What a cluster job reports about itself; empty if this is not a cluster job.
    """

    placed: PlacedImage | None = None
    share: Share | None = None
    activity = ""

    def __init__(self, needs: Needs, request: Request, granted: Granted, log: Path) -> None:
        self.needs, self.settings, self.places = needs, needs.settings, (places := needs.places)
        dataset, facts = load_dataset(places), run_facts(places)
        self.log, self.request, self.granted = log, request, granted
        self.dataset, self.selected, self.stage = dataset.path, selected_in(places), request.stage
        self.keep_going = facts.get("keep_going", True)
        self.wanted = Wanted(
            request.analysis, read_json_or_empty(places.index / "tool.json"), facts.get("forced", False), current_run()
        )
        self.children = Children()
        self.why_invalid, self.is_installed = cache(self.invalid), cache(partial(is_installed, dataset))
        copying = granted.copying
        self.turns = Turns({"stage_in": copying, "compute": granted.at_once, "stage_out": copying} if copying else {})
        self.to_fetch, self.to_analyse, self.to_drop = deque[str](), deque[str](), deque[str]()
        self.stages = {
            DROP: (self.to_drop, self.may_drop, self.drop),
            ANALYSE: (self.to_analyse, self.may_analyse, self.analyse),
            FETCH: (self.to_fetch, self.may_fetch, self.fetch),
        }
        self.exit_codes, self.fetched = dict[str, int](), dict[str, Facts]()
        self.retried, self.noted_for, self.users = set[tuple[str, int]](), set[str](), Counter[str]()
        self.job: Entry = {}
        self.needs_of = cache(partial(needs.of, attempt=min(request.attempt, ATTEMPTS)))
        memory_mb = granted.memory_mb and granted.memory_mb - needs.own_mb()
        self.limits = memory_mb, granted.work_mb, granted.work_files
        self.began_s = self.said_s = time.monotonic()
        self.fetches = dataset.kind != "folder" and bool(request.share) and not needs.on_cluster
        ahead = needs.settings.dataset.ahead
        self.limit_bytes = math.inf if ahead is None else parse_size(ahead, "config key dataset.ahead")

    def prepare(self, names: Sequence[str], left: list[str]) -> None:
        """Find out which participants are left to process, and at which stage each begins.

        The caller passes in ``left`` those without a record; the list is replaced by those that have to be
        processed.
        """
        places, stage = self.places, self.stage
        self.count = len(names)
        if stage == DROP:
            self.to_drop.extend(name for name in names if places.record(name).exists())
        else:
            if stage == ANALYSE:  # the costs of fetching were written by an earlier job
                self.fetched = read_json_or_empty(places.got(self.request.share)).get("participants", {})
            for name in names:
                if (code := self.code_before(name)) is not None:
                    self.exit_codes[name] = code
            self.known = len(self.exit_codes)
            left[:] = [name for name in names if name not in self.exit_codes]
            if stage == ANALYSE:
                self.prepare_analysis(names)
            for name in left:
                if self.fetches and not self.has_images(name):
                    self.to_fetch.append(name)
                elif stage == FETCH:
                    self.exit_codes[name] = 0
                else:
                    self.to_analyse.append(name)
            note(
                self.log, f"{len(left)} of {len(names)} to {'fetch' if stage == FETCH else 'analyse'}: {' '.join(left)}"
            )
            if left:
                doing = f"{'Fetching the images of' if stage == FETCH else 'Analysing'} {len(left)} of"
                self.say(f"{doing} {counted(len(names), 'participant')}: {first_of(left, shown=5)}")
        again = self.request.share.startswith(CALIBRATION)  # its participants run once more, and need their images
        if stage == DROP or (self.settings.dataset.drop and self.fetches and stage != FETCH and not again):
            waiting = (images for name, images in self.selected.items() if not places.record(name).exists())
            self.users.update(image.content for images in waiting for image in images)

    def prepare_analysis(self, names: Sequence[str]) -> None:
        """Remove outdated records and failures, and what killed jobs left on this node; get the tool and its image
        ready.

        Raises
        ------
        TierError
            If this node of a cluster does not have the dataset.
        """
        settings, places = self.settings, self.places
        self.clear_node()
        use_threads(self.needs.threads)
        for name in names:  # if fetching fails, an old record must not pass for a new one
            is_done = self.exit_codes.get(name) == 0
            (places.failure(name) if is_done else places.record(name)).unlink(missing_ok=True)
        if self.needs.on_cluster and not any(self.dataset.glob("*")):
            raise TierError(
                f"nothing is there on {platform.node()}",
                f"dataset {self.dataset}",
                "mount it, or place it on a tier that all nodes see",
            )
        if self.known < self.count and not settings.is_app:
            self.load_tool()
        self.placed = placed_image(settings, places, self.log)
        if settings.is_app:
            self.share = self.needs.share_in_pool(self.granted, names)
            use_threads(self.share.threads)
        elif settings.results_dataset:
            digest = f"sha256:{self.placed.sha256}" if self.placed else None
            made_with = run_facts(places).get("made_with", {})
            self.activity = identifier(how_of(settings, self.wanted.tool.get("version") or "", digest, made_with))

    def load_tool(self) -> None:
        """Load the tool; if it reports a version, that must be the one that all records name."""
        tool, wanted = make_tool(self.settings.tool), self.wanted.tool.get("version") or UNKNOWN
        version = UNKNOWN
        if not self.settings.image:
            try:
                version = tool.version()
            except ToolError as error:
                if self.needs.on_cluster:  # the head has the tool, and another node may have it
                    raise ContainerError(f"{error.what}, on {platform.node()}", error.where, error.fix) from None
                # otherwise each participant reports it
        if UNKNOWN not in (version, wanted) and version != wanted:
            problem = f"its version is {version} on {platform.node()} now, and the results are made with {wanted}"
            fix = f"load {wanted} again, or add --forcerun prepare_tool to analyse all participants with {version}"
            kind = ContainerError if self.needs.on_cluster else ToolError  # another node may have that version
            raise kind(problem, f"tool {tool.name!r}", fix)
        tool.load()

    def clear_node(self) -> None:
        """Remove what killed jobs of this user left on this node, whichever results they worked on; tiers in memory
        first."""
        tiers = self.settings.tiers
        in_memory = [name for name, tier in tiers.items() if is_in_memory(tier.kind) and not tier.node]
        for name in dict.fromkeys([*in_memory, self.settings.placement["work"]]):
            if KINDS[tiers[name].kind].remote:  # not this node's own
                continue
            with suppress(OSError, NeurotierError):  # a participant that needs the tier reports the problem
                work = tier_named(self.settings, name).here().folder("work")
                for results in names_in(work):
                    remove_abandoned(work / results)
                    remove_empty(work / results)

    def note_job(self, exit_code: int | None = None) -> None:
        """Report the job's start and, with an exit code, its end to the journal of each run that it works for."""
        if not self.job or not (is_wanted(self.places) or exit_code is not None):
            return
        end: Entry = {}
        if exit_code is not None:  # the reason is that of the first participant that failed with this code
            failures = map(self.failure_of, self.job["members"].split())
            reasons = (failure["reason"] for failure in failures if failure.get("exit_code") == exit_code)
            is_of_node = exit_code in (TierError.exit_code, ContainerError.exit_code)
            ended_s = time.time()
            end = {
                "ended_s": ended_s,
                "exit_code": exit_code,
                "state": "FAILED" if exit_code else "COMPLETED",
                "elapsed_s": max(0.0, ended_s - self.job["started_s"]),
                "fault_of_node": next(reasons, f"exit code {exit_code}") if is_of_node else None,
            }
        if end or current_run() not in self.noted_for:
            self.noted_for.add(current_run())
            add_entry(self.places, "job", **self.job, **end)

    def failure_of(self, name: str) -> Facts:
        """The failure record that this run wrote for a participant; empty if none."""
        failure = read_json_or_empty(self.places.failure(name))
        return failure if failure.get("run") == current_run() else {}

    def note_killed(self, name: str, stage: str, number: int) -> int:
        """Record and report that a signal killed a child, unless the child gave a reason itself; returns its exit
        code."""
        code = 128 + number
        if may_pass(self.failure_of(name).get("exit_code") or code):
            reason = f"the job was {describe_exit(code)}"
            log = self.places.log(name) if stage == ANALYSE else self.log
            with suppress(OSError):
                keep_failure(self.places, name, stage, reason, code, log)
            self.say(f"neurotier: {name}: {reason}")
        return code

    def say(self, line: str) -> None:
        """Print a line for the user, on the stream to which Snakemake reports its own progress."""
        self.said_s = time.monotonic()
        say(line)

    def code_before(self, name: str) -> int | None:
        """The exit code of a participant that is done, invalid, not fetched, or has failed in this run; ``None``
        otherwise."""
        record, images = read_json_or_empty(self.places.record(name)), images_of(self.places, name)
        if record and (self.stage == FETCH or self.wanted.is_met(record, images)):
            return 0  # the derivatives were checked at the start of the run
        if missed := self.fetched.get(name, {}).get("failed"):
            return int(missed)
        if why := self.why_invalid(images[0].site):
            keep_failure(self.places, name, "validate_dataset", why, InputError.exit_code, self.log)
            return InputError.exit_code
        code = self.failure_of(name).get("exit_code") if self.request.attempt > 1 else None
        if not code or may_pass(code):
            return None
        self.say(f"neurotier: {name}: failed in this run already, and is not tried again")
        return int(code)

    def invalid(self, site: str) -> str:
        """Why no participant of a site is analysed, if the site must be valid and is not (this is also printed); empty
        otherwise."""
        if self.settings.dataset.validation != "require" or self.stage == FETCH or not self.request.share:
            return ""
        if why := refusal_line(read_json(self.places.validation(site)), site or "dataset"):
            self.say(f"neurotier: {why}")
        return why

    def has_images(self, name: str) -> bool:
        """Whether a participant's images are on the dataset tier; for an app, which needs other files, too, a child
        checks it."""
        images, links_to = self.selected[name], self.settings.dataset.links_to
        present = (is_present(self.dataset, image.path, links_to) for image in images)
        if self.settings.is_app or not (self.is_installed(images[0].site) and all(present)):
            return False
        self.fetched[name] = NO_COST
        return True

    def run(self) -> int:
        """Process all participants; returns the exit code of the process.

        Raises
        ------
        Interrupted
            If this process is asked to end; its children are ended first.
        """
        freeze_garbage_collector()  # or each child would search all imported objects for garbage
        try:
            while self.begin() or self.children.running:
                for child, said, code in self.children.wait():
                    if code is not None:
                        self.handle_end(child, code)
                    elif child.stage == FETCH:
                        self.fetched[child.name] = said  # the cost of fetching
                    else:
                        self.turns.ask(child, said)
        except Interrupted:
            terminate_forked({child.pid for child in self.children.running.values()})
            raise
        return self.close()

    def begin(self) -> bool:
        """Start each child that may start; returns whether any participant still waits."""
        if any(self.exit_codes.values()) and not self.keep_going:
            self.to_fetch.clear()
            self.to_analyse.clear()
        self.note_job()
        for stage, (waiting, may_begin, work) in self.stages.items():
            while waiting and may_begin(name := waiting[0]):
                try:
                    self.children.start(stage, name, partial(work, name))
                except OSError:  # too many processes, or no memory for one: wait until another has ended
                    if not self.children.running:
                        raise
                    break
                waiting.popleft()
        return any(waiting for waiting, _, _ in self.stages.values())

    def may_drop(self, _name: str) -> bool:
        """Whether no other images are being dropped: git-annex would make this one wait anyway."""
        return not self.children.at(DROP)

    def may_analyse(self, name: str) -> bool:
        """Whether there is room for one more participant: in what was granted, and in what is free on the tier now."""
        running = self.children.at(ANALYSE)
        if not running:
            return True
        if any((one, TierError.exit_code) in self.retried for one in [*running, name]):
            return False  # one of them found the tier full although there seemed to be room
        needed = self.needs.combined(map(self.needs_of, [*running, name]), self.granted)
        is_over = any(limit is not None and one > limit for limit, one in zip(self.limits, needed, strict=True))
        if is_over or len(running) >= self.granted.present:
            return False
        need = self.needs_of(name)
        try:
            check_room(self.tiers["work"], need.work_mb * MEGABYTE, need.work_files)
        except (NeurotierError, OSError):  # a missing tier is reported by each participant
            return False
        return True

    @cached_property
    def tiers(self) -> dict[str, Tier]:
        """The tiers whose room is checked; the work tier as it is on this node."""
        tiers = tiers_of(self.settings)
        return tiers | {"work": tiers["work"].here()}

    def may_fetch(self, name: str) -> bool:
        """Whether to fetch a participant's images now: for a free slot, or ahead of one if there is room."""
        fetching = self.children.at(FETCH)
        if len(fetching) >= self.settings.dataset.concurrent_gets:
            return False
        if self.stage == FETCH:
            return True
        fits = False
        with suppress(OSError):  # the child that fetches reports a lost tier
            fits = self.tiers["dataset"].free_bytes() >= self.bytes_of([*fetching, name]) + RESERVE_BYTES
        before = [*self.to_analyse, *fetching]
        dropping = [*self.to_drop, *self.children.at(DROP)]
        kept = [*before, *dropping]
        if len(before) + len(self.children.at(ANALYSE)) < self.granted.present:  # if they do not fit, git-annex says so
            return not dropping or (fits and self.bytes_of(kept) <= self.limit_bytes)
        return fits and self.bytes_of([*kept, name]) <= self.limit_bytes

    def bytes_of(self, names: Iterable[str]) -> int:
        """Size of the images of participants."""
        return sum(size_of(self.selected[name]) for name in names)

    def handle_end(self, child: Child, code: int) -> None:
        """Decide what happens next to a participant whose child has ended."""
        name, stage = child.name, child.stage
        self.turns.ask(child, "")
        if stage == DROP:
            if code and self.stage == DROP:
                self.exit_codes[name] = abs(code)
            return
        if code < 0:
            code = self.note_killed(name, stage, -code)
        note(self.log, f"{name}: {stage}: exit code {code}")
        if (now_s := time.monotonic()) - self.said_s >= SAY_S:
            over, failed = len(self.exit_codes), sum(map(bool, self.exit_codes.values()))
            counts = f"{over - failed} of {counted(self.count, 'participant')} done, {failed} failed"
            if self.known < over < self.count:  # judging by the rate so far
                counts += f", about {about((now_s - self.began_s) * (self.count - over) / (over - self.known))} left"
            self.say(counts)
        if code and self.is_worth_another_try(name, stage, code):
            self.retried.add((name, code))
            self.say(f"neurotier: {name}: is tried once more")
            if stage == FETCH or code == SourceError.exit_code:
                self.to_fetch.appendleft(name)
            else:
                add_entry(self.places, "again")
                self.to_analyse.append(name)
        elif not code and stage != self.stage:
            self.to_analyse.append(name)
        else:
            self.exit_codes[name] = code
            if code and stage == FETCH:
                self.fetched[name] = {"failed": code}
            elif not code and self.users:
                self.users.subtract(image.content for image in self.selected[name])
                self.to_drop.append(name)

    def is_worth_another_try(self, name: str, stage: str, code: int) -> bool:
        """Whether to try a participant again at once: its images are gone again, or others have filled the tier.

        Only once for each exit code: another run that drops images of a shared clone may be the cause both times. If
        several participants fill the tier together, the last one to fail finds none running, but one that is tried
        again.
        """
        if (name, code) in self.retried:
            return False
        if stage == FETCH:
            return code > 128
        is_gone = self.fetches and code == SourceError.exit_code and bool(self.fetched.get(name))
        return is_gone or (code == TierError.exit_code and bool(self.children.at(ANALYSE) or self.retried))

    def close(self) -> int:
        """Write the marker unless another attempt may do better; returns the exit code of the process."""
        failed = {name: code for name, code in self.exit_codes.items() if code}
        open_ends = [code for name, code in failed.items() if self.may_do_better(name, code)]
        if self.request.marker and not open_ends:
            is_fetch = self.stage == FETCH
            content = {"participants": self.fetched} if is_fetch else {"failed": failed}
            write_json(self.request.marker, content, durable=is_fetch)
        return next(iter(open_ends), 0)

    def may_do_better(self, name: str, code: int) -> bool:
        """Whether another attempt may succeed: with more memory or, on a cluster, on another node."""
        is_given_up = self.needs.on_cluster and not self.keep_going
        if self.stage == FETCH:
            return code > 128 or not self.keep_going
        if self.request.marker is None or self.stage == DROP or is_given_up:
            return True
        if self.request.attempt >= ATTEMPTS or "failed" in self.fetched.get(name, {}):
            return False
        return code > 128 or (self.needs.on_cluster and may_pass(code))

    # The following methods run in children; each returns the exit code.

    def fetch(self, name: str, said: Connection) -> int:
        """Fetch a participant's images, and send the cost to the pool."""
        say_in_log = partial(note, self.log)
        with reporting(self.places, [name], FETCH, self.log) as result, datalad_errors():
            self.places.failure(name).unlink(missing_ok=True)
            images = self.selected[name]
            ensure_clone(self.settings, self.places, images[0].site, say_in_log)
            fetched = get_images(
                self.dataset, files_of(images, self.dataset, self.settings), self.settings.dataset, say_in_log
            )
            said.send({**times_so_far(), "fetched_files": fetched})
        return result.exit_code

    def analyse(self, name: str, said: Connection) -> int:
        """Analyse a participant."""
        places, log = self.places, self.places.log(name)

        def wait_for(turn: str) -> None:
            if self.turns.limits:
                said.send(turn)
                said.recv()

        with reporting(places, [name], ANALYSE, log) as result:
            places.failure(name).unlink(missing_ok=True)
            begin_log(log)
            images = self.selected[name]
            job = Job(
                participant=name,
                images=images,
                dataset=self.dataset,
                settings=self.settings,
                tool_version=self.wanted.tool.get("version") or "",
                log=log,
                placed=self.placed,
                before={"analysis": key_of(self.wanted.analysis, images), "got": self.fetched.get(name)},
                share=self.share,
                activity=self.activity,
                wait_for=wait_for,
            )
            if run_participant(job):
                add_entry(places, "again")
        return result.exit_code

    def drop(self, name: str, _said: Connection) -> int:
        """Drop a participant's images, except those whose content an unfinished participant still needs."""
        # git-annex drops contents, not names, and sidecars of several participants may have the same content
        unused = [image.path for image in self.selected[name] if not (image.content and self.users[image.content])]
        try:
            kept = drop_images(self.dataset, unused)
        except NeurotierError as error:
            kept = str(error)
        note(self.log, f"{name}: kept: {kept}" if kept else f"{name}: dropped")
        if kept and self.stage == DROP:
            self.say(f"neurotier: {name}: images stay on the dataset tier: {kept}")
        return 0
