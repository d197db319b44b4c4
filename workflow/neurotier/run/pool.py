"""The pool: one process through which the participants of a share flow: fetched, analysed, and their images dropped.

Who goes next is decided here, in memory, within what Snakemake has granted; nobody waits on a file. What is then done
a child does, a copy of this process: Python and the libraries start once. The pool ends well when everyone has a
record, or a failure that would come again; it fails when another attempt may do better.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from multiprocessing.connection import Connection
from pathlib import Path
from signal import Signals
from typing import Any

from neurotier.analysis.brains import Job, Share
from neurotier.analysis.needs import threads_of, work_bytes, work_files
from neurotier.analysis.participant import run_participant
from neurotier.analysis.staging import check_room
from neurotier.analysis.tools import make_tool
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import BusyError, InputError, KilledError, NeurotierError, SourceError, TierError, may_pass
from neurotier.core.files import clear_log, read_json, whole_json, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import current_run, end_with_parent, spare_collections
from neurotier.core.quantities import about, counted, first_of
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier, parse_size, tiers_of
from neurotier.dataset.contents import drop_images, is_present, not_shared
from neurotier.dataset.validation import check
from neurotier.meter.measure import Interrupted
from neurotier.meter.own import times_so_far
from neurotier.run import slurm
from neurotier.run.adoption import is_wanted
from neurotier.run.children import Child, Children, Turns
from neurotier.run.jobs import (
    begin_log,
    get_images_of,
    keep_failure,
    load_settings,
    note,
    placed_image,
    reporting,
    run_facts,
)
from neurotier.run.journal import SAY_S, noting_job, tell
from neurotier.run.needs import Granted, Needs
from neurotier.run.participants import images_of, selected_in
from neurotier.run.shares import key_of, members_of, name_of, size_bytes, wanted_by

FETCH, ANALYSE, DROP = "get_images", "analyze_participant", "drop_images"
"""What is done for a participant, as failures name it."""

Facts = Mapping[str, Any]

ATTEMPTS = 2
"""How often a share is tried because of failures that may pass."""

RESERVE_BYTES = 100_000_000
"""What git-annex leaves free on a tier unless told otherwise (``annex.diskreserve``): below that it would refuse."""

NOTHING_TOOK = {"wall_s": 0.0, "cpu_s": 0.0, "run_queue_s": 0.0, "fetched_files": 0}
"""What it takes to fetch what is there."""

SHOWN = 5
"""Most participants who are named to the user."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a pool.

    Attributes
    ----------
    share
        Whose images are fetched or who is analysed; empty for those named in ``only``.
    only
        Participants, without fetching.
    marker
        File to write at the end.
    analysis
        See :attr:`neurotier.run.plan.Plan.analysis`.
    attempt
        Number of the attempt.
    fetch_only
        Whether images are fetched, and nobody is analysed.
    """

    share: str = ""
    only: Sequence[str] = ()
    marker: Path | None = None
    analysis: str = ""
    attempt: int = 1
    fetch_only: bool = False


def run_pool(results: Path, asked: Asked, granted: Granted, log: Path) -> int:
    """Have the participants of a share flow through a pool; the exit code of the process.

    Parameters
    ----------
    results
        Results folder of the run.
    asked
        Whose images are fetched, or who is analysed.
    granted
        What the job has.
    log
        File that takes what is said of the share; each participant has one of its own.
    """
    settings = load_settings(results)
    places = Places.from_settings(settings)
    wanted = is_wanted(places)
    names = list(asked.only) or members_of(asked.share, places)
    elsewhere = bool(run_facts(places).get("elsewhere")) and not asked.fetch_only
    threads, most = threads_of(settings), (settings.shares.at_once or 1) if elsewhere else len(names)
    at_once = max(1, min(most, (granted.threads or threads) // threads))
    beside = settings.shares.staging_beside if asked.share else 0
    granted = granted._replace(at_once=at_once, beside=beside, elsewhere=elsewhere).among(len(names))
    if elsewhere and not wanted:
        print("neurotier: another run has begun since this job was submitted; it does nothing", file=sys.stderr)
        return BusyError.exit_code
    end_with_parent()
    clear_log(log)
    write_text(log, slurm.job_line(), durable=False)
    if asked.attempt > 1 and not elsewhere:
        tell(places, "again", attempt=asked.attempt)
    pool = Pool(settings, places, asked, granted, log)
    if elsewhere:
        pool.note_job = noting_job(places, name_of(asked.share), names, at_once, at_once * threads)
    left = [name for name in names if not places.record(name).exists()]
    with reporting(places, left, ANALYSE, log) as result:
        pool.prepare(names)
    exit_code = result.exit_code or pool.run()
    if 0 < result.exit_code <= 128:
        pool.codes.update(dict.fromkeys(left, exit_code))
        exit_code = pool.close()
    if pool.note_job is not None:
        is_wanted(places)
        pool.note_job(exit_code)
    return exit_code


class Pool:
    """The participants of a share, on their way.

    Parameters
    ----------
    settings, places
        Of the run.
    asked, granted, log
        See :func:`run_pool`.

    Attributes
    ----------
    placed
        The container image, if there is one.
    prepared
        Times at which tool and container image were ready, s since 1970.
    share
        What an app may take for one participant.
    """

    placed: PlacedImage | None = None
    prepared: Sequence[float] = ()
    share: Share | None = None
    note_job: Callable[[int | None], None] | None = None

    def __init__(self, settings: Settings, places: Places, asked: Asked, granted: Granted, log: Path) -> None:
        known, facts = read_json(places.index / "dataset.json"), run_facts(places)
        self.settings, self.places, self.log, self.granted = settings, places, log, granted
        self.dataset, is_plain = Path(known["path"]), known["kind"] == "folder"
        self.keep_going = facts.get("keep_going", True)
        self.wanted = wanted_by(places, asked.analysis, facts.get("anew", False), current_run())
        self.asked, self.children, self.needs = asked, Children(), Needs(settings, places, granted.elsewhere)
        beside, at_once, own_mb = granted.beside, granted.at_once, self.needs.own_mb()
        self.turns = Turns({"stage_in": beside, "compute": at_once, "stage_out": beside} if beside else {})
        self.to_fetch, self.to_analyse, self.to_drop = deque[str](), deque[str](), deque[str]()
        self.codes: dict[str, int] = {}
        self.got: dict[str, Facts] = {}
        self.once_more: set[tuple[str, int]] = set()
        self.bytes: dict[str, int] = {}
        self.needs_of = cache(partial(self.needs.of, attempt=min(asked.attempt, ATTEMPTS)))
        self.limits = granted.memory_mb and granted.memory_mb - own_mb, granted.work_mb, granted.work_files
        self.why_invalid = cache(self.invalid)
        self.users: Counter[str] = Counter()
        self.count, self.known = 0, 0
        self.began_s = self.said_s = time.monotonic()
        self.fetches = not is_plain and bool(asked.share) and not granted.elsewhere
        ahead = settings.dataset.ahead
        self.limit_bytes = None if ahead is None else parse_size(ahead, "config key dataset.ahead")

    def prepare(self, names: Sequence[str]) -> None:
        """Find out who is left, and where each of them begins."""
        settings, places, fetch_only = self.settings, self.places, self.asked.fetch_only
        selected, self.count = selected_in(places), len(names)
        if self.asked.share and not fetch_only:
            self.got = (whole_json(places.got(self.asked.share)) or {}).get("participants", {})  # else times are lost
        codes = {name: self.code_before(name) for name in names}
        self.codes = {name: code for name, code in codes.items() if code is not None}
        self.known = len(self.codes)
        left = [name for name in names if name not in self.codes]
        self.bytes = {name: size_bytes(selected[name]) for name in left}
        if not fetch_only:
            for name in names:  # were its images not to be had, an old result would pass for a new one
                is_done = self.codes.get(name) == 0
                (places.failure(name) if is_done else places.record(name)).unlink(missing_ok=True)
            if left and not settings.app.image:
                make_tool(settings.tool).load()
            files = [places.index / name for name in ("tool.json", "image.json", "caches.json")]
            self.placed = placed_image(settings, places, self.log)
            self.prepared = [file.stat().st_mtime for file in files if file.exists()]
            if settings.app.image:
                self.share = self.needs.share_in_pool(self.granted, names)
        for name in left:
            (self.to_fetch if self.fetches and not self.are_here(name) else self.to_analyse).append(name)
        if fetch_only:
            self.codes.update(dict.fromkeys(self.to_analyse, 0))
            self.to_analyse.clear()
        if settings.dataset.drop and self.fetches:
            waiting = (name for name in selected if name in self.bytes or not places.record(name).exists())
            self.users.update(image.content for name in waiting for image in selected[name])
        note(self.log, f"{len(left)} of {len(names)} to {'fetch' if fetch_only else 'analyse'}: {' '.join(left)}")
        if left:
            doing = "Fetching the images of" if fetch_only else "Analysing"
            self.say(f"{doing} {len(left)} of {counted(len(names), 'participant')}: {first_of(left, shown=SHOWN)}")

    def failure_code(self, name: str) -> int | None:
        """The exit code in the failure record that this run has written of a participant."""
        failure = whole_json(self.places.failure(name)) or {}
        return failure.get("exit_code") if failure.get("run") == current_run() else None

    def was_killed(self, name: str, stage: str, number: int) -> str:
        """Write down that a child was killed by a signal, which could not itself; the reason, if it is news."""
        if not may_pass(self.failure_code(name) or 128 + number):
            return ""
        reason = str(KilledError(f"the job was killed by {Signals(number).name} (out of memory?)"))
        log = self.places.log(name).absolute() if stage == ANALYSE else self.log
        with suppress(OSError):
            keep_failure(self.places, name, stage, reason, 128 + number, log)
        return reason

    def say(self, line: str) -> None:
        """Tell the user, where Snakemake tells its own progress."""
        self.said_s = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def code_before(self, name: str) -> int | None:
        """The exit code of a participant that is done, not valid, not fetched, or has failed in this run; else none."""
        record, images = whole_json(self.places.record(name)), images_of(self.places, name)
        if record is not None and (self.asked.fetch_only or self.wanted.is_met(record, images)):
            return 0  # at whose derivatives the start has looked
        missed = self.got.get(name, {}).get("failed")
        if missed is not None:
            return int(missed)
        if why := self.why_invalid(images[0].site):
            keep_failure(self.places, name, "validate_dataset", why, InputError.exit_code, self.log)
            return InputError.exit_code
        code = self.failure_code(name) if self.asked.attempt > 1 else None
        if code is None or may_pass(code):
            return None
        self.say(f"neurotier: {name}: failed in this run already, and is not tried again")
        return code

    def invalid(self, site: str) -> str:
        """Why nobody of a site is analysed, of which the user is told: it is not valid, and must be."""
        if self.settings.dataset.validation != "require" or self.asked.fetch_only or not self.asked.share:
            return ""
        try:
            check(read_json(self.places.validation(site)), site or "dataset", "require")
        except InputError as error:
            self.say(f"neurotier: {error}")
            return str(error)
        return ""

    def are_here(self, name: str) -> bool:
        """Whether a participant's images are on the dataset tier; an app's other files are looked at in a child."""
        paths = [image.path for image in images_of(self.places, name)]
        links_to = self.settings.dataset.links_to
        if self.settings.app.image or not all(is_present(self.dataset, path, links_to) for path in paths):
            return False
        self.got[name] = {**NOTHING_TOOK, "end_s": time.time(), "files": len(paths)}
        return True

    def run(self) -> int:
        """Have everyone flow; the exit code of the process.

        Raises
        ------
        Interrupted
            If this process is told to end: so are its children.
        """
        spare_collections()  # or each child would look for garbage among all that was imported
        try:
            while self.begin() or self.children.running:
                for child, said, code in self.children.wait():
                    if code is None:
                        self.hear(child, said)
                    else:
                        self.turns.end(child)
                        self.has_ended(child, code)
        except Interrupted:
            self.children.end()
            raise
        return self.close()

    def begin(self) -> bool:
        """Start who may start; whether anybody waits."""
        if any(self.codes.values()) and not self.keep_going:
            self.to_fetch.clear()
            self.to_analyse.clear()
        if self.to_drop and not self.children.at(DROP):  # one at a time: git-annex has others wait anyway
            name = self.to_drop.popleft()
            self.children.start(DROP, name, partial(self.drop, name, self.users.__getitem__))
        if self.note_job is not None and is_wanted(self.places):
            self.note_job(None)
        while self.to_analyse and self.may_analyse(self.to_analyse[0]):
            name = self.to_analyse.popleft()
            takes_turns = bool(self.turns.limits)
            self.children.start(ANALYSE, name, partial(self.analyse, name, self.got.get(name), takes_turns))
        while self.to_fetch and self.may_fetch(self.to_fetch[0]):
            name = self.to_fetch.popleft()
            self.children.start(FETCH, name, partial(self.fetch, name))
        return bool(self.to_drop or self.to_analyse or self.to_fetch)

    def may_analyse(self, name: str) -> bool:
        """Whether there is room for one more: of what was granted, and of what is free now, as others use the tier."""
        running = self.children.at(ANALYSE)
        if not running:
            return True
        together = zip(self.limits, *map(self.needs_of, [*running, name]), strict=True)
        if len(running) >= self.granted.present or any(
            limit is not None and sum(needs) > limit for limit, *needs in together
        ):
            return False
        images = images_of(self.places, name)
        try:
            check_room(self.tiers["work"], work_bytes(images, self.settings), work_files(images, self.settings))
        except NeurotierError:  # a tier that is not there each participant says itself
            return False
        return True

    @cached_property
    def tiers(self) -> dict[str, Tier]:
        """The tiers that are looked at; that of the node this is on, if each has its own."""
        tiers = tiers_of(self.settings)
        return {"work": tiers["work"].here(), "dataset": tiers["dataset"]}

    def may_fetch(self, name: str) -> bool:
        """Whether to fetch a participant's images now: for a slot that is free, or ahead of it if there is room."""
        fetching = self.children.at(FETCH)
        if len(fetching) >= self.settings.dataset.concurrent_gets:
            return False
        if self.asked.fetch_only:
            return True
        on_the_way = sum(self.bytes[other] for other in fetching)
        fits = self.tiers["dataset"].free_bytes() >= on_the_way + self.bytes[name] + RESERVE_BYTES
        before = [*self.to_analyse, *fetching]
        dropping = [*self.to_drop, *self.children.at(DROP)]
        kept_bytes = sum(self.bytes[other] for other in (*before, *dropping))
        if len(before) + len(self.children.at(ANALYSE)) < self.granted.present:  # git-annex says what does not fit
            return not dropping or (fits and (self.limit_bytes is None or kept_bytes <= self.limit_bytes))
        return fits and (self.limit_bytes is None or kept_bytes + self.bytes[name] <= self.limit_bytes)

    def hear(self, child: Child, said: Any) -> None:
        """Take what a child says: what its fetch took, or that it wants another turn."""
        if child.stage == FETCH:
            self.got[child.name] = said
        else:
            self.turns.ask(child, said)

    def has_ended(self, child: Child, code: int) -> None:
        """See to a participant whose child has ended."""
        name, stage = child.name, child.stage
        if stage == DROP:
            return
        if code < 0:
            if reason := self.was_killed(name, stage, -code):
                self.say(f"neurotier: {name}: {reason}")
            code = 128 - code
        note(self.log, f"{name}: {stage}: exit code {code}")
        if time.monotonic() - self.said_s >= SAY_S:
            failed = sum(map(bool, self.codes.values()))
            counts = f"{len(self.codes) - failed} of {counted(self.count, 'participant')} done, {failed} failed"
            self.say(", ".join(filter(None, [counts, self.time_left()])))
        if code and self.is_worth_another_try(name, stage, code):
            self.once_more.add((name, code))
            self.say(f"neurotier: {name}: is tried once more")
            if stage == FETCH or code == SourceError.exit_code:
                self.to_fetch.appendleft(name)
            else:
                self.to_analyse.append(name)
        elif code:
            self.codes[name] = code
            if stage == FETCH:
                self.got[name] = {"failed": code, "end_s": time.time()}
        elif stage == FETCH and not self.asked.fetch_only:
            self.to_analyse.append(name)
        else:
            self.codes[name] = 0
            if self.users:
                self.users.subtract(image.content for image in images_of(self.places, name))
                self.to_drop.append(name)

    def time_left(self) -> str:
        """How long the others will take if they go on ending as often as so far; empty if nobody has ended."""
        ended, left = len(self.codes) - self.known, self.count - len(self.codes)
        if not ended or not left:
            return ""
        return f"about {about((time.monotonic() - self.began_s) * left / ended)} left"

    def is_worth_another_try(self, name: str, stage: str, code: int) -> bool:
        """Whether to try a participant once more at once: its images are gone again, or others have filled the tier.

        Once for each: a run that drops what it shares with this one can be the cause of both.
        """
        if (name, code) in self.once_more:
            return False
        if stage == FETCH:
            return code > 128
        is_gone = self.fetches and code == SourceError.exit_code and bool(self.got.get(name))
        return is_gone or (code == TierError.exit_code and bool(self.children.at(ANALYSE)))

    def close(self) -> int:
        """Write the marker if nothing is left that another attempt may do; the exit code of the process."""
        failed = {name: code for name, code in self.codes.items() if code}
        marker = self.asked.marker
        told: dict[str, Any] = {"participants": self.got} if self.asked.fetch_only else {"failed": failed}
        if self.asked.fetch_only:
            again = [code for code in failed.values() if code > 128 or not self.keep_going]
        elif marker is None or (self.granted.elsewhere and not self.keep_going):  # other shares, too
            again = list(failed.values())
        else:
            again = [code for name, code in failed.items() if self.may_do_better(name, code)]
        if marker is not None and not again:
            write_json(marker, told, durable=self.asked.fetch_only)
        return next(iter(again), 0)

    def may_do_better(self, name: str, code: int) -> bool:
        """Whether another attempt may: with more memory, and on a cluster on another node."""
        if self.asked.attempt >= ATTEMPTS or "failed" in self.got.get(name, {}):
            return False
        return code > 128 or (self.granted.elsewhere and may_pass(code))

    # Children do what follows; each gives its exit code.

    def fetch(self, name: str, said: Connection) -> int:
        """Fetch the images of a participant, and say what that took."""
        with reporting(self.places, [name], FETCH, self.log) as result:
            self.places.failure(name).unlink(missing_ok=True)
            fetched = get_images_of(name, self.settings, self.places, self.log)
            said.send({**times_so_far(), "end_s": time.time(), **fetched})
        return result.exit_code

    def analyse(self, name: str, got: Facts | None, takes_turns: bool, said: Connection) -> int:
        """Analyse a participant; ``got`` is what it took to fetch its images, for which it may have waited last."""
        places, log = self.places, self.places.log(name).absolute()

        def wait_for(turn: str) -> None:
            said.send(turn)
            said.recv()

        with reporting(places, [name], ANALYSE, log) as result:
            begin_log(places, name, log)
            images = images_of(places, name)
            # Snakemake updates the times of files when their jobs end, so for other inputs only their order is known.
            waited_last = got and all(time_s <= got["end_s"] for time_s in self.prepared)
            job = Job(
                participant=name,
                run=current_run(),
                images=images,
                dataset=self.dataset,
                settings=self.settings,
                tool_version=self.wanted.tool.get("version") or "",
                log=log,
                placed=self.placed,
                before={
                    "analysis": key_of(self.wanted.analysis, images),
                    "ready_s": got["end_s"] if got and waited_last else None,
                    "got": got and dict(got),
                },
                share=self.share,
                wait_for=wait_for if takes_turns else lambda _: None,
            )
            run_participant(job)
        return result.exit_code

    def drop(self, name: str, is_in_use: Callable[[str], object], _said: Connection) -> int:
        """Drop those images of a participant whose contents nobody needs who is not done."""
        images = images_of(self.places, name)
        in_use = {image.content for image in images if is_in_use(image.content)}
        kept = drop_images(self.dataset, not_shared(images, in_use))
        note(self.log, f"{name}: kept: {kept}" if kept else f"{name}: dropped")
        return 0
