"""The work on the participants of a share: what all of them use, and what a child of the pool does for one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from signal import Signals
from typing import Any

from neurotier.analysis.participant import Job, run_participant
from neurotier.analysis.tools import make_tool
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import KilledError, may_pass
from neurotier.core.files import read_json, whole_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.settings import Settings
from neurotier.dataset.contents import drop_images, not_shared
from neurotier.meter.own import times_so_far
from neurotier.run.jobs import begin_log, get_images_of, keep_failure, note, placed_image, reporting, run_facts
from neurotier.run.needs import Granted
from neurotier.run.participants import images_of
from neurotier.run.shares import key_of, wanted_by

FETCH, ANALYSE, DROP = "get_images", "analyze_participant", "drop_images"
"""What is done for a participant, as failures name it."""

Facts = Mapping[str, Any]


class Work:
    """What is done for the participants of a share, and what all of them use.

    Parameters
    ----------
    settings, places
        Of the run.
    log
        File that takes what is said of the share.
    granted
        What the job has.
    analysis
        See :attr:`neurotier.run.plan.Plan.analysis`.

    Attributes
    ----------
    placed
        The container image, if there is one.
    prepared
        Times at which tool and container image were ready, s since 1970.
    """

    placed: PlacedImage | None = None
    prepared: Sequence[float] = ()

    def __init__(self, settings: Settings, places: Places, log: Path, granted: Granted, analysis: str) -> None:
        known, facts = read_json(places.index / "dataset.json"), run_facts(places)
        self.settings, self.places, self.log, self.granted = settings, places, log, granted
        self.dataset, self.is_plain = Path(known["path"]), known["kind"] == "folder"
        self.keep_going = facts.get("keep_going", True)
        self.wanted = wanted_by(places, analysis, facts.get("anew", False), current_run())

    def prepare_tool(self, everyone: Iterable[str], left: Collection[str]) -> None:
        """Have tool and container image ready, imported and placed once for all who are left."""
        settings, places = self.settings, self.places
        if left and not settings.app.image:
            make_tool(settings.tool).load()
        files = [places.index / name for name in ("tool.json", "image.json", "caches.json")]
        self.placed = placed_image(settings, places, self.log)
        self.prepared = [file.stat().st_mtime for file in files if file.exists()]
        self.granted = self.granted.with_files(settings, places, (images_of(places, name) for name in everyone))

    def is_done(self, name: str) -> bool:
        """Whether a participant has the record that is wanted; at whose derivatives the start has looked."""
        record = whole_json(self.places.record(name))
        return record is not None and self.wanted.is_met(record, images_of(self.places, name))

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
                share=self.granted.share(self.settings) if self.settings.app.image else None,
                wait_for=wait_for if takes_turns else None,
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
