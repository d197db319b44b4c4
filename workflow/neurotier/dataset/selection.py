"""The selection: which images the filters of the configuration leave, by participant, session and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from neurotier.core.configuration import suggestion
from neurotier.core.errors import InputError
from neurotier.core.settings import DatasetSettings
from neurotier.dataset.bids import Image
from neurotier.dataset.source import Dataset


def select(
    images: Sequence[Image], settings: DatasetSettings, everyone: set[str], dataset: Dataset, of_none: bool
) -> list[Image]:
    """The images that the configuration selects; ``of_none`` as in :func:`chosen`.

    While a site cannot be reached, unknown labels are no error, since they may belong to it.

    Raises
    ------
    InputError
        If a label asked for does not exist, or nothing is left.
    """
    labels = sorted({member.rsplit("/", 1)[-1].removeprefix("sub-") for member in everyone})
    if not dataset.unreachable:
        check_known("participants", "sub", settings.participants, labels)
        check_known("sessions", "ses", settings.sessions, sorted({image.session for image in images} - {""}))
        check_known("runs", "run", settings.runs, sorted({image.bids_run for image in images} - {""}))
    is_participant = selector(settings.participants, "sub")
    asked = [image for image in images if is_participant(image.label)]
    left = chosen(asked, settings.sessions, settings.runs, of_none)
    if not left:
        raise InputError(
            "nothing is left to analyse",
            where=f"dataset.source {dataset.source!r}",
            fix="see the filters under dataset",
        )
    return left


def chosen(
    images: Sequence[Image], sessions: Sequence[str | int], runs: Sequence[str | int], of_none: bool
) -> list[Image]:
    """Those images that filters of sessions and runs select.

    Parameters
    ----------
    images
        Of one or more participants.
    sessions, runs
        Labels; none select all.
    of_none
        Whether files of no session or no run belong to those of each, as an app takes them, such as sidecars and field
        maps. They are kept of participants who have a file of what is asked for.
    """
    is_session, is_run = selector(sessions, "ses"), selector(runs, "run")
    named = [image for image in images if is_session(image.session) and is_run(image.bids_run)]
    if not of_none:
        return named
    participants = {image.participant for image in named}
    return [
        image
        for image in images
        if image.participant in participants
        and (not image.session or is_session(image.session))
        and (not image.bids_run or is_run(image.bids_run))
    ]


def selector(wanted: Sequence[str | int], prefix: str) -> Callable[[str], bool]:
    """Whether a filter selects a label; an empty filter selects all. A filter may list thousands.

    >>> selector(["ses-1"], "ses")("1"), selector(["1"], "run")("01"), selector(["1"], "sub")("01")
    (True, True, False)
    """
    names = {plain_label(str(name), prefix) for name in wanted}
    return lambda label: not names or plain_label(label, prefix) in names


def plain_label(name: str, prefix: str) -> str:
    """A label as the user or a file wrote it, to compare. BIDS runs are numbers, so that 1 and 01 are the same."""
    bare = name.removeprefix(f"{prefix}-")
    return str(int(bare)) if prefix == "run" and bare.isdigit() else bare


def check_known(key: str, prefix: str, wanted: Sequence[str | int], known: Sequence[str]) -> None:
    """Raise :class:`InputError` if a filter names a label that does not exist."""
    plain = {plain_label(label, prefix) for label in known}
    for name in map(str, wanted):
        if plain_label(name, prefix) not in plain:
            bare = name.removeprefix(f"{prefix}-")
            raise InputError(
                f"the dataset has no {prefix}-{bare}{suggestion(bare, list(known))}",
                where=f"dataset.{key}",
                fix=f"it has {len(known)}: {', '.join(known[:5])}{', ...' if len(known) > 5 else ''}",
            )
