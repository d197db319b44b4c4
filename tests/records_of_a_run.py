"""The records of runs in a form of no version's own, so that tables of two versions can be made of the same data.

Times differ between two runs. To compare how two versions tabulate, take the records of one run: this reads them from
the results folder as versions up to 0.1 wrote it, by its files alone, and writes ``RUN.json`` for each run; a later
version is fed from there, and :mod:`same_outputs` compares the tables::

    python tests/records_of_a_run.py results neutral

A file of the neutral form, in which a value that is not known is ``null``, has

``form``
    The number of this form, 1.
``run``
    Its identifier, start and end (Unix time), cores, parallelism and what else limited it, tool, container image, for
    each role of storage the tier (name, path, kind, file system), and ``row``: its row of ``runs.tsv`` when it ended.
``participants``
    Of each that this run analysed: ``participant`` (``SITE/sub-X``), host, tool, container, waits before it began,
    ``phases``, and ``made``: all else that was written of it, such as volumes and checksums of derivatives.
``failures``
    Of each participant that failed: why, and with which exit code.
``steps``
    What is done once, such as obtaining an image: ``step``, ``item`` and ``phases``.
``jobs``
    Jobs of a cluster, as its accounting told of them.

A phase has ``phase``, ``start_s``, ``end_s`` (Unix time); ``times_s``: wall, CPU and waits; ``account``: what its wall
time was spent on; ``bytes``: memory, input, read, written; ``traffic``: bytes and files each way, a row per tier; and
``facts``: the rest, such as counts and where figures come from. Names within these are those of the record.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

Record = dict[str, Any]

FORM = 1
OF_PHASES = ("phase", "start_s", "end_s", "traffic")
OF_RUNS = ("started_s", "ended_s", "succeeded", "cores", "parallelism", "limits", "tiers", "analysis", "image", "row")
OF_PARTICIPANTS = ("participant", "host", "tool", "tool_version", "container", "work_tier", "ready_s", "slot_wait_s")


def read_all(folder: Path) -> Iterator[tuple[Path, Record]]:
    """Whole JSON files below a folder, in order of name; the others are unfinished."""
    for file in sorted(folder.rglob("*.json")):
        if not file.name.startswith("."):
            yield file.relative_to(folder), json.loads(file.read_text())


def neutral_phase(record: Record) -> Record:
    """A phase, its figures sorted by what they are of."""
    made: Record = {name: record.get(name) for name in OF_PHASES}
    made |= {"times_s": {}, "account": {}, "bytes": {}, "facts": {}}
    for name, value in record.items():
        if name in OF_PHASES:
            continue
        if name.startswith(("account", "residual")):
            made["account"][name] = value
        elif name.endswith("_bytes"):
            made["bytes"][name] = value
        else:
            made["times_s" if name.endswith("_s") else "facts"][name] = value
    return made


def neutral_participant(record: Record) -> Record:
    """A participant: what every version knows, its phases, and what was made."""
    left = {name: value for name, value in record.items() if name not in (*OF_PARTICIPANTS, "run", "phases")}
    known = {name: record.get(name) for name in OF_PARTICIPANTS}
    return {**known, "phases": [neutral_phase(phase) for phase in record["phases"]], "made": left}


def neutral_runs(results: Path) -> Iterator[Record]:
    """The runs of a results folder, oldest first."""
    records = sorted((record for _, record in read_all(results / "profile" / "records")), key=itemgetter("participant"))
    steps = [step for _, step in read_all(results / "profile" / "steps")]
    failures = [failure for _, failure in read_all(results / "state" / "failures")]
    jobs = {file.stem: told["rows"] for file, told in read_all(results / "state" / "jobs") if "rows" in told}
    for _, facts in read_all(results / "state" / "runs"):
        run = facts["run"]
        yield {
            "form": FORM,
            "run": {"run": run, **{name: facts.get(name) for name in OF_RUNS}},
            "participants": [neutral_participant(record) for record in records if record["run"] == run],
            "failures": [failure for failure in failures if failure["run"] == run],
            "steps": [
                {**step, "phases": [neutral_phase(phase) for phase in step["phases"]]}
                for step in steps
                if step["run"] == run
            ],
            "jobs": jobs.get(run, []),
        }


def main(results: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for made in neutral_runs(results):
        (target / f"{made['run']['run']}.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
