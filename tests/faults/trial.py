"""One trial: its chance, its room, what its commands said and what it violated."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from faults import invariants
from faults.processes import During, Said, end_all, environment_of, run
from faults.rooms import Room
from faults.templates import PARTICIPANTS, Kind, Prepared, Reference, names_in, snakemake

PATIENCE_S = 300.0

UNNEEDED = re.compile(
    r"(table: |missing: results/)(index|probe|bigbrain/blocks|campaign/runs|advice/calibration|\w+/points)"
)
"""What is missing, and is not asked for by a target other than the analyses once what is made of it is there."""

OF_REPORT = re.compile(r"report\.html$|(figures|profile|group|state/mosaics)/")
"""What is written after a failure, whatever was asked for; pictures of masks are kept in the state."""


@dataclass
class Trial:
    """A trial in its room.

    Attributes
    ----------
    name
        ``SEED-NUMBER``; its processes carry it.
    stage
        How far the project had come before it.
    target
        What its commands ask for.
    hit
        Whether the fault came while there was something to disturb.
    kept
        What had been measured before the fault, and is not to be measured again; ``None`` for what there is after it.
    """

    name: str
    chance: random.Random
    prepared: Prepared
    kind: Kind
    stage: str
    target: str
    fault: str = ""
    hit: bool = False
    kept: dict[Path, bytes] | None = None
    said: list[Said] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def room(self) -> Room:
        return self.prepared.room

    @property
    def reference(self) -> Reference:
        """What an undisturbed run leaves."""
        return self.prepared.references[self.kind.name, self.target]

    def violate(self, violations: Iterable[str], when: str = "") -> None:
        """Note what was violated."""
        self.violations += [f"{when}{line}" for line in violations]

    def start(self, during: During | None = None, before: Iterable[str] = (), after: Iterable[str] = ()) -> Said:
        """Start the command as a user does, and disturb it; traces and hangs are violations."""
        environment = environment_of(self.name)
        output = self.room.at / f"said-{len(self.said)}"
        words = [*before, *snakemake(self.target), *self.kind.words, *after]
        said = run(words, self.room.project, environment, output, during, PATIENCE_S)
        self.said.append(said)
        self.violate(invariants.traces(said), f"command {len(self.said)}: ")
        return said

    def disturb(self, during: During | None = None, before: Iterable[str] = ()) -> None:
        """Start the command with a fault: no half file has a final name, and exit 0 is never said with less."""
        said = self.start(during, before)
        self.violate(invariants.half_files(self.room, self.reference), "after the fault: ")
        if said.code == 0:
            self.violate(invariants.incomplete(self.room, self.reference, list(PARTICIPANTS)), "exit 0 with less: ")

    def start_again(self, *after: str) -> None:
        """Start the same command without a fault, with words after it: everything is as after an undisturbed run."""
        kept = invariants.measured(self.room) if self.kept is None else self.kept
        said = self.start(after=after)
        self.violate(invariants.measured_again(kept, self.room))
        if said.code != 0:
            self.violate([f"exit {said.code} instead of 0: {said.command}"])
        room, reference = self.room, self.reference
        self.violate(invariants.incomplete(room, reference, list(PARTICIPANTS)))
        self.violate(invariants.half_files(room, reference))
        if self.kind.saved:
            self.violate(invariants.unsaved(room))
        known = self.prepared.references[self.kind.name, self.kind.target or "all"].names
        if self.target == "participants":  # the page that a failed run has left is made again by who asks for it
            known |= {"state/unfinished.json"}
        elif self.kind.target and any(said.code for said in self.said):  # the report of a run that failed stays
            known |= {name for name in names_in(room.results) if OF_REPORT.match(name)}
        self.violate(invariants.unknown_files(room, known))
        missing = sorted(reference.names - set(names_in(room.results)))
        # checked above; what a run keeps for itself, and need not keep; so what a campaign keeps of its runs
        apart = {"derivatives", "state", "runs"}
        found = [f"missing: results/{name}" for name in missing if apart.isdisjoint(Path(name).parts)]
        found += invariants.differing_tables(room, reference)
        self.violate(line for line in found if not (self.kind.target and UNNEEDED.search(line)))
        self.violate(invariants.leftovers(room))
        strays = list(invariants.strays(self.name))
        self.violate(strays)
        if strays:
            end_all(self.name)
