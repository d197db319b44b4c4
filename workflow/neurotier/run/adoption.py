"""Cluster jobs that outlive their head: the next head takes over those that do work that it needs, and ends the others.

A job writes records and journal itself, without the head. The name of a Slurm job identifies its results folder, its
share and the work to be done on it. So the jobs of a killed head are found, even those whose number the head never
learnt. With other schedulers, or with the plugin ``slurm``, jobs are known by their numbers in the journal; these are
ended, and one that starts later finds that another run has begun.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from neurotier.core.errors import BusyError, InputError
from neurotier.core.files import Record, read_json, read_json_or_empty, without
from neurotier.core.foreign import read_text
from neurotier.core.places import Places, short_hash
from neurotier.core.processes import RUN, current_run
from neurotier.core.quantities import counted
from neurotier.core.settings import Say
from neurotier.run import slurm
from neurotier.run.journal import entries, read_notes
from neurotier.run.participants import images_of, key_of, members_of

NUMBER = re.compile(r"\w[\w.\[\]-]*")
"""A valid job number of any scheduler: one that another user has planted might look like an option."""


NAMED = re.compile(r"neurotier-[0-9a-f]{8}-")
"""The beginning of the names of all jobs that are identified by their names (:func:`prefix_of`)."""


def prefix_of(places: Places) -> str:
    """The prefix of the names of all Slurm jobs for a results folder."""
    return f"neurotier-{short_hash(str(places.results.resolve()))}-"


def name_of_job(places: Places, share: str, analysis: str, settings: Any = None) -> str:
    """Name of the Slurm job that analyses a share: the prefix, eight digits that identify its work, and the share.

    The digits are a hash of the analysis, the participants with their images, and all settings, by default the saved
    ones.
    """
    members = [[name, key_of(analysis, images_of(places, name))] for name in members_of(share, places)]
    work = short_hash(json.dumps([members, settings or read_json(places.settings_file)], sort_keys=True))
    return f"{prefix_of(places)}{work}-{share}"


def leftover_jobs(places: Places) -> tuple[dict[str, slurm.Queued], dict[str, str]]:
    """Jobs of runs that have not ended.

    First those that Slurm lists, by number; then the numbers of other schedulers' jobs that were submitted and have not
    noted their own end, each with its run. If this machine has a Slurm, plain numbers are taken for Slurm's. A number
    may meanwhile belong to another job, or to a job of another cluster: a job is ours only if it works in the folder
    that was noted at its submission, and does not have the name of a job for other results.

    Raises
    ------
    BusyError
        If Slurm does not answer.
    """
    prefix = prefix_of(places)
    submitted = {}
    works_in = {}
    for folder in sorted(places.journal("any").parent.glob("*")):
        over = {note.get("job") for note in read_notes(places, folder.name) if "exit_code" in note}
        lines = entries(places, folder.name, "submitted")  # of those with one log, all but the last have ended
        for line in {line.get("log", line.get("job")): line for line in lines}.values():
            if (number := str(line.get("job"))) not in over and NUMBER.fullmatch(number):
                submitted[number], works_in[number] = folder.name, line.get("folder")
    known = {
        number: job
        for number, job in slurm.queue().items()
        if job.name.startswith(prefix) or (job.folder == works_in.get(number) and not NAMED.match(job.name))
    }
    others = without(submitted, *known)
    plain = {number for number in others if number.replace("_", "").isdigit()}
    if plain and slurm.is_set_up():  # Slurm does not list them, so they have ended
        others = without(others, *plain)
    return known, others


def last_facts(places: Places) -> Record:
    """The facts that the latest run noted about itself; empty if there was none, or they cannot be read."""
    return read_json_or_empty(places.runs / f"{latest_run(places)}.json")


def take_over(places: Places, wanted: Mapping[str, str], command: str, say: Say) -> dict[str, str]:
    """End the jobs that earlier runs left, except those that do wanted work; returns the shares of these jobs, each
    with the serial number of its start.

    Parameters
    ----------
    places
        Of the results, whose lock the caller holds.
    wanted
        The name of each share's job, without the serial number of a start.
    command
        The profile's command that ends a job of a scheduler other than Slurm; empty if the profile has none.
    say
        Prints a line for the user.

    Raises
    ------
    BusyError
        If Slurm does not answer.
    """
    try:
        left, others = leftover_jobs(places)
    except BusyError as error:
        raise BusyError(f"jobs of an earlier run may still go on: {error.what}", error.where, error.fix) from None
    awaited = {work: share for share, work in wanted.items()}
    taken, kept = {}, []
    for number, job in left.items():
        work, _, serial = job.name.rpartition(".")  # names of other rules' jobs end with the rule's name instead
        # A job that is still COMPLETING was cancelled, and Slurm is ending it.
        if serial.isdecimal() and work in awaited and job.state != "COMPLETING":
            taken[awaited.pop(work)] = serial
            kept.append(number)
    if kept:
        say(f"neurotier: waiting for {counted(len(kept), 'cluster job')} of an earlier run: {' '.join(kept)}")
    end_jobs(without(left, *kept), others, command, say)
    return taken


def end_jobs(jobs: Mapping[str, slurm.Queued], others: Iterable[str], command: str, say: Say) -> None:
    """End Slurm jobs, and wait until they are gone; end jobs of another scheduler with its command."""
    failed = {number: f"it is still {state}" for number, state in slurm.cancel(jobs).items()}
    gone = [f"{number} ({job.state})" for number, job in jobs.items() if number not in failed]
    for number in others:
        why = "the profile has no command for it (cluster-generic-cancel-cmd)"
        if command:
            _, why = slurm.run_command(*shlex.split(command), number)
        if why:
            failed[number] = why
        else:
            gone.append(number)
    if gone:
        say(f"neurotier: ended {counted(len(gone), 'cluster job')} left by an earlier run: {' '.join(gone)}")
    for number, why in failed.items():
        say(f"neurotier: job {number} of an earlier run could not be ended: {why}; end it, or its work is done twice")


def last_notes(places: Places) -> dict[str, Record]:
    """The last note of each job of this run about itself, by the job's number."""
    return {str(note.get("job")): note for note in read_notes(places, current_run())}


# What a job checks for itself.


def latest_run(places: Places) -> str:
    """The run that began last; empty if that cannot be read."""
    file = places.latest_run
    with suppress(InputError, OSError):
        return read_text(file.parent, file.name).strip()
    return ""


def is_wanted(places: Places) -> bool:
    """Whether the latest run needs this job. A Slurm job of a share works for that run from now on: the environment is
    set. The hash of the results folder in its name is not compared: nodes may resolve that path differently."""
    latest = latest_run(places)
    if latest and NAMED.match(os.environ.get("SLURM_JOB_NAME", "")):
        os.environ[RUN] = latest
    return RUN not in os.environ or latest in ("", current_run())
