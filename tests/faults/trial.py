"""One trial: its chance, its room, what it said and what it violated."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.core.errors import NeurotierError
from neurotier.core.places import Places
from neurotier.core.processes import RUN
from neurotier.core.settings import Settings
from neurotier.run.healing import find_damage, remove
from neurotier.run.snakemake_internals import Slots
from neurotier.run.start import acquire, end_run, start_run

from faults import invariants
from faults.processes import During, Said, end_all, end_with, environment_of, run
from faults.rooms import Room
from faults.templates import PARTICIPANTS, Kind, Prepared, Reference, job_words, names_in

JOB_PATIENCE_S = 40.0
RUN_PATIENCE_S = 240.0


@dataclass
class Trial:
    """A trial in its room.

    Attributes
    ----------
    name
        ``SEED-NUMBER``; its processes carry it.
    hit
        Whether the fault came while there was something to disturb.
    """

    name: str
    chance: random.Random
    prepared: Prepared
    kind: Kind
    stage: str
    fault: str = ""
    hit: bool = False
    said: list[Said] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def room(self) -> Room:
        return self.prepared.room

    def reference(self, target: str) -> Reference:
        """What an undisturbed run leaves for a target."""
        return self.prepared.references[self.kind.name, target]

    def violate(self, violations: Iterable[str], when: str = "") -> None:
        """Note what was violated."""
        self.violations += [f"{when}{line}" for line in violations]

    def command(
        self,
        words: list[str],
        during: During | None = None,
        patience_s: float = RUN_PATIENCE_S,
        more: dict[str, str] | None = None,
    ) -> Said:
        """Run a command in the project; traces and hangs are violations."""
        environment = environment_of(self.name, self.room.temporary) | (more or {})
        output = self.room.at / f"said-{len(self.said)}"
        said = run(words, self.room.project, environment, output, during, patience_s)
        self.said.append(said)
        self.violate(invariants.traces(said), f"command {len(self.said)}: ")
        return said

    def begin(self) -> str:
        """Begin a run as Snakemake's process does, in a child process which then holds the lock; its identifier."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            end_with(signal.SIGKILL)
            os.chdir(self.room.project)
            try:
                said = json.dumps(begin_here())
            except NeurotierError as error:
                said = json.dumps({"error": str(error)})
            except BaseException as error:
                said = json.dumps({"error": f"fault in neurotier: {type(error).__name__}: {error}"})
            os.write(writer, said.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            ready, _, _ = select.select([file], [], [], JOB_PATIENCE_S)
            if not ready:
                os.kill(child, signal.SIGKILL)
            text = file.read()
        os.waitpid(child, 0)
        answer: dict[str, str] = json.loads(text or '{"error": "the start of a run hung, or ended without a word"}')
        if "error" in answer:
            self.said.append(Said("begin a run", 1, answer["error"]))
            self.violate([f"a run could not begin: {answer['error']}"])
        return answer.get("run", "none")

    def end(self, run_id: str) -> None:
        """End a run as Snakemake's process does."""
        child = os.fork()
        if child == 0:
            end_with(signal.SIGKILL)
            code = 0
            os.chdir(self.room.project)
            try:
                os.environ[RUN] = run_id
                end_run(read_settings(), run_id)
            except BaseException as error:
                print(f"the end of a run: {type(error).__name__}: {error}", file=sys.stderr)
                code = 1
            os._exit(code)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            self.violate(["a run could not be ended"])

    def job(self, participant: str, run_id: str, during: During | None = None, before: Iterable[str] = ()) -> Said:
        """Run a participant job as the rule does."""
        words = [*before, *job_words(participant)]
        return self.command(words, during, JOB_PATIENCE_S, {RUN: run_id})

    def check_job(self, participant: str) -> None:
        """After the second job: everything of this participant is there, and nothing else."""
        reference = self.reference("participants")
        room = self.room
        self.violate(invariants.half_files(room, reference))
        self.violate(invariants.incomplete(room, reference, [participant]))
        self.violate(invariants.unknown_files(room, reference))
        self.check_clean()

    def check_run(self, target: str) -> None:
        """After the second run: everything is as after an undisturbed one."""
        reference = self.reference(target)
        room = self.room
        self.violate(invariants.incomplete(room, reference, list(PARTICIPANTS)))
        self.violate(invariants.half_files(room, reference))
        self.violate(invariants.differing_tables(room, reference))
        self.violate(invariants.unknown_files(room, self.reference("all")))
        missing = sorted(reference.names - set(names_in(room.results)))
        elsewhere = ("derivatives/", "state/")  # checked above; written by the next run that finds something to do
        self.violate(f"missing: results/{name}" for name in missing if not name.startswith(elsewhere))
        self.check_clean()

    def check_clean(self) -> None:
        """No intermediates, no unfinished files, no processes."""
        self.violate(invariants.leftovers(self.room))
        found = list(invariants.strays(self.name))
        self.violate(found)
        if found:
            end_all(self.name)

    def check_exit(self, said: Said, code: int = 0) -> None:
        """The command that came after the fault ends as it should."""
        if said.code != code:
            self.violate([f"exit {said.code} instead of {code}: {said.command}"])

    def check_honest(self, said: Said, participants: list[str]) -> None:
        """Exit 0 is never said with less than everything."""
        if said.code == 0:
            found = invariants.incomplete(self.room, self.reference("participants"), participants)
            self.violate(found, "exit 0 with less: ")


def read_settings() -> Settings:
    return Settings.from_json(json.loads(Path("results/state/settings.json").read_text()))


def begin_here() -> dict[str, str]:
    """Begin a run in this process, as Snakemake's does."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    settings = read_settings()
    places = Places.from_settings(settings)
    acquire(places)
    remove(find_damage(places, by_app=False))
    return {"run": start_run(settings, Slots(2, 2, {}), ["fault campaign"])}
