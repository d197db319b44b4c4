"""Outcomes of a commit, kept as they come: a campaign goes on where it was stopped, and its sittings count together."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from support import ROOT

FOLDER = ROOT / ".faults"


@dataclass
class Outcome:
    """What a trial found."""

    number: int
    kind: str
    fault: str
    hit: bool
    violations: list[str] = field(default_factory=list)
    last_lines: list[str] = field(default_factory=list)
    took_s: float = 0.0
    seed: int = 0
    only: str = ""


@dataclass(frozen=True)
class Ledger:
    """The file of a commit's outcomes, a line each."""

    file: Path

    @classmethod
    def of_checkout(cls) -> Ledger:
        """That of the commit that is checked out; what was tried on changed files counts for no commit."""
        commit = git("rev-parse", "HEAD")
        FOLDER.mkdir(exist_ok=True)
        file = FOLDER / f"{commit}.jsonl"
        if git("status", "--porcelain", "--untracked-files=no"):
            file = file.with_name("changed.jsonl")
            file.unlink(missing_ok=True)
        return cls(file)

    def outcomes(self) -> list[Outcome]:
        """All that were kept; a last line that was cut short is none."""
        if not self.file.exists():
            return []
        lines = self.file.read_text().splitlines(keepends=True)
        return [Outcome(**json.loads(line)) for line in lines if line.endswith("\n")]

    def missing(self, numbers: Iterable[int], seed: int, only: str) -> list[int]:
        """Trials of a seed that no sitting has held."""
        held = {outcome.number for outcome in self.outcomes() if (outcome.seed, outcome.only) == (seed, only)}
        return [number for number in numbers if number not in held]

    def keep(self, outcome: Outcome) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def detach(log: Path) -> bool:
    """Go on in a process of its own, which no terminal ends, and says all to a file; whether this is that process."""
    if os.fork():
        return False
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
    return True


def git(*words: str) -> str:
    """What git says of the checkout."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
