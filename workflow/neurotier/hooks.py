"""Hooks: what happens at the start and the end of a run, in Snakemake's own process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from neurotier.jobs import Record, note_killed, read_failures
from neurotier.places import Places
from neurotier.run import command_line, current_run, end_run, start_run
from neurotier.settings import Settings


def make_importable(workflow_folder: str) -> None:
    """Have jobs find this Python and this library, installed or not: they run ``python3 -m neurotier``.

    The command of a rule names no path, so that moving the environment is no reason to analyse everyone again.
    """
    prepend("PATH", str(Path(sys.executable).parent))
    prepend("PYTHONPATH", workflow_folder)


def prepend(variable: str, folder: str) -> None:
    """Put a folder first in a search path of the environment."""
    known = filter(None, os.environ.get(variable, "").split(os.pathsep))
    os.environ[variable] = os.pathsep.join(dict.fromkeys([folder, *known]))


def begin(settings: Settings, cores: int | None) -> None:
    """Start a run; see :func:`neurotier.run.start_run`."""
    start_run(settings, cores, command_line())


def finish(settings: Settings, succeeded: bool) -> None:
    """End a run. After failures, write tables, figures and report for those who were analysed."""
    places = Places.from_settings(settings)
    end_run(settings, current_run())
    note_killed(places, current_run())
    failures = read_failures(places) if (places.index / "images.tsv").exists() else []
    for failure in failures:
        say(f"failed  {failure['participant']}: {failure['reason']}")
    if not succeeded and (places.index / "images.tsv").exists():
        from neurotier.stages import write_partial

        write_partial(settings, places)
    if (places.results / "report.html").exists():
        say(summary_line(places, failures))
        say(f"Report: {places.results / 'report.html'}")


def summary_line(places: Places, failures: list[Record]) -> str:
    """How many participants are done, failed and left."""
    from neurotier.tables import read_table

    everyone = {row["participant"] for row in read_table(places.index / "images.tsv", "images")}
    done = sum(places.record(name).exists() for name in everyone)
    left = len(everyone) - done - len(failures)
    return f"{done} of {len(everyone)} participants done, {len(failures)} failed" + (
        f", {left} not run" if left else ""
    )


def say(line: str) -> None:
    """Tell the user, where Snakemake tells its own progress."""
    print(line, file=sys.stderr, flush=True)
