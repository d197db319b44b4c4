"""The job that fetches images: those of the next participants, while others are analysed.

One process for the whole run: DataLad is loaded once, and each fetch is a copy of the process. Those whose turn has
come are first, then all others in the order in which they will be analysed, as long as no more than ``dataset.ahead``
waits on the dataset tier, and it has room. With ``dataset.drop``, images of who is done are dropped at once, and count
until they are gone.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from neurotier.core.files import clear_log, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import end_forked, fork_process
from neurotier.core.settings import Settings
from neurotier.core.tiers import parse_size, tiers_of
from neurotier.dataset.bids import Image
from neurotier.meter.measure import Interrupted
from neurotier.meter.own import times_so_far
from neurotier.run import slurm
from neurotier.run.batches import by_urgency, read_batches
from neurotier.run.jobs import get_images_of, load_dataset, load_settings, note, reporting, run_facts
from neurotier.run.participants import selected_by
from neurotier.run.turns import LOOK_S, analysing, fetching, hear_turns, note_fetched, working, works

ALONE_S = 120.0
"""How long this job waits for room while nobody is analysed: then nobody may come any more, and who does can fetch."""

RESERVE_BYTES = 100_000_000
"""What git-annex leaves free on a tier unless told otherwise (``annex.diskreserve``): below that it would refuse."""

NOTHING_TOOK = {"wall_s": 0.0, "cpu_s": 0.0, "run_queue_s": 0.0, "fetched_files": 0}
"""What it takes to fetch what is there."""


def fetch_images(results: Path, batches_at_once: int, marker: Path, log: Path) -> int:
    """Fetch the images of all who are to be analysed; the exit code of the process.

    Parameters
    ----------
    results
        Results folder of the run.
    batches_at_once
        How many batches are analysed at the same time, which gives the order.
    marker
        File to write at the end.
    log
        File that takes what is said.
    """
    settings = load_settings(results)
    places = Places.from_settings(settings)
    with working(fetching(places)):
        clear_log(log)
        write_text(log, slurm.job_line(), durable=False)
        selected = selected_by(places.index / "images.tsv")
        batches = {number: of for number, of in read_batches(places).items() if not places.batch(number).exists()}
        sizes_bytes = {number: sum_bytes(of, selected) for number, of in batches.items()}
        names = in_order(sizes_bytes, batches, batches_at_once)
        fetcher = Fetcher(settings, places, {name: selected[name] for name in names}, log)
        try:
            code = fetcher.run()
        except Interrupted:
            fetcher.stop()
            raise
    if not code:
        write_json(marker, {"fetched": fetcher.count, "left": len(fetcher.waiting)}, durable=False)
    return code


def sum_bytes(names: Sequence[str], selected: Mapping[str, Sequence[Image]]) -> int:
    """Size of the images of some participants, bytes."""
    return sum(image.size_bytes or 0 for name in names for image in selected.get(name, []))


def in_order(sizes_bytes: Mapping[str, int], batches: Mapping[str, Sequence[str]], at_once: int) -> list[str]:
    """Participants in the order in which they are analysed, more or less: the longest batches first, so many at once.

    >>> in_order({"1": 5, "2": 9, "3": 7}, {"1": ["a", "b"], "2": ["c", "d"], "3": ["e"]}, 2)
    ['c', 'e', 'd', 'a', 'b']
    """
    numbers = by_urgency(sizes_bytes)
    rounds = [numbers[first : first + at_once] for first in range(0, len(numbers), at_once)]
    return [
        batches[number][place]
        for together in rounds
        for place in range(max(len(batches[number]) for number in together))
        for number in together
        if place < len(batches[number])
    ]


def fetch_one(settings: Settings, places: Places, name: str, log: Path) -> int:
    """Fetch the images of a participant in a process of its own, and note it; the exit code."""
    from neurotier.run.stops import unwinding

    try:
        with unwinding(), reporting(places, [name], "get_images", log) as result:
            places.failure(name).unlink(missing_ok=True)
            fetched = get_images_of(name, settings, places, log)
            note_fetched(places, name, {**times_so_far(), "end_s": time.time(), **fetched})
        if 0 < result.exit_code <= 128:
            note_fetched(places, name, {"failed": result.exit_code, "end_s": time.time()})
        return result.exit_code
    except Interrupted as interrupted:
        return 128 + interrupted.signal_number


class Fetcher:
    """Fetches the images of some participants in order, and drops them if asked.

    Parameters
    ----------
    settings, places
        Of the run.
    images
        The participants in order, with the images of each.
    log
        File that takes what is said.
    """

    def __init__(self, settings: Settings, places: Places, images: Mapping[str, Sequence[Image]], log: Path) -> None:
        given = settings.dataset.ahead
        self.settings, self.places, self.images, self.log = settings, places, images, log
        self.dataset, self.tier = load_dataset(places).path, tiers_of(settings)["dataset"]
        self.limit_bytes = None if given is None else parse_size(given, "config key dataset.ahead")
        self.keep_going = run_facts(places).get("keep_going", True)
        self.bytes = {name: sum_bytes([name], images) for name in images}
        self.waiting, self.count, self.code = dict.fromkeys(images), 0, 0
        self.queue = deque(name for name in images if self.limit_bytes is None or self.bytes[name] <= self.limit_bytes)
        self.called = deque[str]()
        self.running, self.dropping = dict[int, str](), dict[int, str]()
        self.ahead, self.turns, self.done = set[str](), set[str](), deque[str]()
        self.seen_s = time.monotonic()

    def run(self) -> int:
        """Fetch everyone; the exit code of the first failure, if the run does not go on after failures."""
        self.look_at_tier()
        while (self.waiting or self.running or self.dropping) and not self.code:
            self.listen()
            self.reap()
            self.drop_next()
            while len(self.running) < self.settings.dataset.concurrent_gets and (name := self.next_up()):
                self.begin(name)
            if not self.running and not self.dropping and self.waiting and self.is_alone():
                note(self.log, f"{len(self.waiting)} are left: there is no room ahead, and nobody is analysed")
                break
            if self.waiting or self.running or self.dropping:
                time.sleep(LOOK_S)
        self.stop()
        return self.code

    def look_at_tier(self) -> None:
        """Find out whose images are there already: a run that was killed may have fetched them."""
        from neurotier.dataset.contents import is_present

        for name in self.images:
            paths = [image.path for image in self.images[name]]
            if not self.settings.app.image and all(
                is_present(self.dataset, path, self.settings.dataset.links_to) for path in paths
            ):
                del self.waiting[name]
                self.ahead.add(name)
                note_fetched(self.places, name, {**NOTHING_TOOK, "end_s": time.time(), "files": len(paths)})
        if self.waiting:
            import datalad.api  # noqa: F401  # once, and not by each copy of this process

    def listen(self) -> None:
        """Hear whose turn has come or is over."""
        come, over = hear_turns(self.places)
        if come or over:
            self.seen_s = time.monotonic()
        self.turns |= come
        self.ahead -= come
        self.called.extend(name for name in come if name in self.waiting)
        for name in over:
            self.turns.discard(name)
            self.ahead.discard(name)
            if self.settings.dataset.drop and name in self.images and self.places.record(name).exists():
                self.done.append(name)

    def next_up(self) -> str | None:
        """Whom to fetch next; ``None`` while there is nobody, or no room."""
        while self.called:
            if self.called[0] in self.waiting:
                return None if self.must_drop_first(self.called[0]) else self.called.popleft()
            self.called.popleft()
        while self.queue and self.queue[0] not in self.waiting:
            self.queue.popleft()
        return self.queue.popleft() if self.queue and self.has_room(self.bytes[self.queue[0]]) else None

    def must_drop_first(self, name: str) -> bool:
        """Whether one whose turn has come waits for a drop: the tier is full, or keeps more than it may meanwhile."""
        if not self.done and not self.dropping:
            return False
        too_much = self.limit_bytes is not None and self.kept_bytes() > self.limit_bytes
        return too_much or not self.fits(self.bytes[name])

    def kept_bytes(self) -> int:
        """Size of what is ahead of its turn, and of what is done and not yet dropped."""
        return sum(self.bytes[name] for name in (*self.ahead, *self.done, *self.dropping.values()))

    def has_room(self, size_bytes: int) -> bool:
        """Whether so many bytes may be fetched ahead of their turn."""
        if not self.fits(size_bytes):
            return False  # at its turn others may be gone, or git-annex says what is missing
        return self.limit_bytes is None or self.kept_bytes() + size_bytes <= self.limit_bytes

    def fits(self, size_bytes: int) -> bool:
        """Whether the tier has room for so many bytes beside what is on its way."""
        on_the_way = sum(self.bytes[name] for name in self.running.values())
        return self.tier.free_bytes() >= on_the_way + size_bytes + RESERVE_BYTES

    def begin(self, name: str) -> None:
        """Start to fetch the images of a participant."""
        del self.waiting[name]
        if name not in self.turns:
            self.ahead.add(name)
        self.running[fork_process(partial(fetch_one, self.settings, self.places, name, self.log))] = name

    def reap(self) -> None:
        """Take note of copies of this process that have ended; of one that was killed there is no note yet."""
        while self.running or self.dropping:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            code = os.waitstatus_to_exitcode(status)
            self.dropping.pop(pid, None)
            if (name := self.running.pop(pid, None)) is None:
                continue
            self.count += not code
            if code < 0 or code > 128:
                note_fetched(self.places, name, {"failed": code if code > 0 else 128 - code, "end_s": time.time()})
            if code:
                self.ahead.discard(name)
                note(self.log, f"{name}: exit code {code}")
                self.code = 0 if self.keep_going else code

    def drop_next(self) -> None:
        """Drop images of one who is done; one at a time, since git-annex would have others wait anyway."""
        if self.done and not self.dropping:
            name = self.done.popleft()
            self.dropping[fork_process(partial(self.drop, name))] = name

    def drop(self, name: str) -> int:
        """Drop the images of a participant that nobody else waits for, in a copy of this process."""
        from neurotier.dataset.contents import drop_images, not_shared

        others = {*self.waiting, *self.ahead, *self.turns, *self.running.values()} - {name}
        in_use = (image for other in others if other in self.images for image in self.images[other])
        kept = drop_images(self.dataset, not_shared(self.images[name], in_use))
        note(self.log, f"{name}: kept: {kept}" if kept else f"{name}: dropped")
        return 0

    def is_alone(self) -> bool:
        """Whether nobody has been analysed for a while."""
        if works(analysing(self.places)):
            self.seen_s = time.monotonic()
        return time.monotonic() > self.seen_s + ALONE_S

    def stop(self) -> None:
        """End the copies of this process."""
        end_forked({*self.running, *self.dropping})
