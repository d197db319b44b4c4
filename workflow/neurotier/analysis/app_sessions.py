"""The calls of an app for one participant: one, or one for each session, one after the other.

A participant stays the unit of work: it is staged, metered, recorded and taken up again as a whole, and its sessions
share the cores and the memory of its job in turn. Each call for a session sees the files of that session, those of the
participant that belong to none, and those at the root of the dataset; it has a work folder and an output folder of its
own. The outputs are merged when all calls have ended well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.analysis.app import Called, Share, merge_outputs, participant_arguments, run_level
from neurotier.core.errors import InputError
from neurotier.core.files import remove_whatever
from neurotier.core.settings import Settings
from neurotier.core.work_folders import OUT
from neurotier.meter.folders import Removal
from neurotier.meter.usage import Usage

if TYPE_CHECKING:  # a job on the host starts no container
    from neurotier.containers.store import PlacedImage

SESSIONS, ASIDE = "sessions", "aside"
"""Folders in a participant's work folder: one per session; and the sessions that a call must not see."""


def call_app(
    label: str,
    sessions: Collection[str],
    bids_dir: Path,
    folder: Path,
    settings: Settings,
    share: Share,
    log: Path,
    placed: PlacedImage,
) -> tuple[Usage, list[dict[str, Any]], Removal]:
    """Call the app for a participant, or for each of its sessions.

    Parameters
    ----------
    label
        Label of the participant, without ``sub-``.
    sessions
        Labels of the sessions that its files are of; the empty label for files of none.
    bids_dir
        The staged dataset of this participant alone.
    folder
        The participant's work folder; the app's output is in its ``out`` afterwards.
    settings, log, placed
        As for :func:`neurotier.analysis.app.run_level`.
    share
        What each call may take.

    Returns
    -------
    tuple
        The cost of starting all containers, a row per call (session, ``None`` for the participant; attempts), and what
        the app had left in its scratch folders.

    Raises
    ------
    InputError
        If the app is to be called by session, and there is none.
    ContainerError, ToolError
        As :func:`neurotier.analysis.app.run_level`; or if two sessions have left a file and a folder of one name.
    """
    from neurotier.meter.lap import joined

    if not settings.app.by_session:
        called = run_level(participant_arguments(settings.app, label, share), bids_dir, folder, settings, log, placed)
        return called.start, [{"session": None, "attempts": called.attempts}], called.removal
    labels = sorted(filter(None, sessions))
    if not labels:
        fix = "leave the participant out, or set app.level to participant"
        raise InputError("has no session, and the app is called by session", where=f"sub-{label}", fix=fix)
    calls: dict[str, Called] = {}
    for session in labels:
        own = folder / SESSIONS / session
        own.mkdir(parents=True)
        arguments = participant_arguments(settings.app, label, share, session)
        with log.open("a") as file:
            file.write(f"neurotier: session {session}\n")
        with one_session(bids_dir / f"sub-{label}", session, folder / ASIDE):
            calls[session] = run_level(arguments, bids_dir, own, settings, log, placed)
    outputs = [folder / SESSIONS / session / OUT for session in labels]
    differing = merge_outputs(outputs, folder / OUT)
    remove_whatever(folder / SESSIONS)
    if differing:
        with log.open("a") as file:
            file.writelines(f"neurotier: sessions differ in {name}; the first was taken\n" for name in differing)
    rows = [{"session": session, "attempts": called.attempts} for session, called in calls.items()]
    removal = Removal()
    for called in calls.values():
        removal.add_all(called.removal)
    return joined([called.start for called in calls.values()]), rows, removal


@contextmanager
def one_session(subject: Path, session: str, aside: Path) -> Iterator[None]:
    """Have only one session's folder in a staged participant's folder; the others lie aside meanwhile."""
    aside.mkdir(exist_ok=True)
    others = [path.name for path in subject.glob("ses-*") if path.is_dir() and path.name != f"ses-{session}"]
    for name in others:
        (subject / name).rename(aside / name)
    try:
        yield
    finally:
        for name in others:
            (aside / name).rename(subject / name)
