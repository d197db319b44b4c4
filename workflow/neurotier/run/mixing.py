"""Mixing: a results folder holds derivatives of one dataset, made by one tool or app with one set of options.

Their description speaks of all of them, also of participants that a run does not analyse. So a run that has another
dataset or tool is refused, or replaces all that is there. What results were made with is in the facts of the runs that
their records name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.core.errors import SettingsError, without_credentials
from neurotier.core.files import remove_whatever, whole_json
from neurotier.core.places import Places, participant_of
from neurotier.core.quantities import counted
from neurotier.dataset.source import is_address
from neurotier.run.healing import SAVED
from neurotier.run.plan import Plan

WHOLE = ("dataset", "tool", "app", "image")
"""What is named alone, if it differs: options are those of a tool."""

CONTENT = "content of the image"


@dataclass(frozen=True)
class Others:
    """Results that were made with something else than this run has.

    Attributes
    ----------
    places
        Of the results.
    participants
        Those who have a record.
    there, here
        What the results were made with, and what this run has, as far as they differ.
    by_app
        Whether an app made them.
    """

    places: Places
    participants: list[str]
    there: str
    here: str
    by_app: bool

    @property
    def folders(self) -> list[Path]:
        """The derivatives of their sites; none through a link that was planted."""
        sites = sorted({name.rpartition("/")[0] for name in self.participants})
        return [self.places.derivatives / site for site in sites if self.places.holds(f"derivatives/{site}/any")]

    def line(self, removed: bool) -> str:
        """What becomes of them, for the user."""
        there = f"{counted(len(self.participants), 'participant')} analysed with {self.there}"
        becomes = "are removed, and everyone is" if removed else "would be removed, and everyone would be"
        return f"neurotier: {self.places.derivatives}: {there} {becomes} analysed with {self.here}"

    def remove(self) -> None:
        """Remove them; what was saved in datasets stays in their history.

        Records go last: by them, the next start knows of what a kill has left.
        """
        for folder in self.folders:
            patterns = ["[!.]*"] if self.by_app else ["sub-*", "dataset_description.json", "README"]
            for entry in [entry for pattern in patterns for entry in folder.glob(pattern) if entry.name not in SAVED]:
                remove_whatever(entry)
            with suppress(OSError):  # it is a dataset, or has files of the user's own
                folder.rmdir()
        steps = (self.places.profile / "steps").rglob("run_group_level.json")
        for path in (*steps, self.places.results / "app", self.places.records):
            remove_whatever(path)


def made_with(plan: Plan) -> dict[str, Any]:
    """What the results of a run are made with, as its facts have it; not version and selection of the dataset."""
    tool, image, source = plan.tool(), plan.image(), without_credentials(plan.settings.dataset.source)
    is_name = source == "demo" or is_address(source)
    facts = {
        "dataset": source.rstrip("/") if is_name else str(Path(source).expanduser().absolute()),
        "app" if plan.is_app else "tool": tool.pop("name"),
        "image": image["image"],
        CONTENT: image["content"],
        **tool,
    }
    return dict(json.loads(json.dumps(facts)))


def other_results(plan: Plan, places: Places, accepted: bool) -> Others | None:
    """The results in the folder of this run, if they were made with something else.

    Parameters
    ----------
    plan, places
        Of this run.
    accepted
        Whether the user has asked for the analysis of everyone, so that they may go.

    Raises
    ------
    SettingsError
        If they may not, or are the history of another dataset.
    """
    there, here = made_before(places), made_with(plan)
    keys = differing(there, here) if there else []
    if not keys:
        return None
    names = [participant_of(file, places.records) for file in places.records.rglob("*.json")]
    others = Others(places, names, said(there, keys), said(here, keys), "app" in there)
    is_history = "dataset" in keys and any((folder / ".git").exists() for folder in others.folders)
    if is_history or not accepted:
        elsewhere = "choose another folder with --config results=NAME"
        again = ", or have these removed and everyone analysed with --forcerun analyze_participants"
        raise SettingsError(
            f"has {counted(len(names), 'participant')} analysed with {others.there}, and this run has {others.here}",
            where=f"results folder {places.results}",
            fix=elsewhere + (": the history of its datasets is that of one source" if is_history else again),
        )
    return others


def made_before(places: Places) -> Mapping[str, Any]:
    """What the results were made with; nothing if there are none, or the facts of all of their runs are lost."""
    for file in places.records.rglob("*.json"):
        facts = whole_json(places.runs / f"{(whole_json(file) or {}).get('run')}.json") or {}
        if isinstance(made := facts.get("made_with"), dict):
            return made
    return {}


def differing(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Keys by which results differ.

    >>> differing({"tool": "bet", "x": 1}, {"tool": "bet", "x": 2})
    ['x']
    >>> differing({"tool": "noop", "x": 1}, {"app": "noop", "y": 2})
    ['tool', 'app']
    """
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    if CONTENT in keys and not (there.get(CONTENT) and here.get(CONTENT)):  # the rule that obtains it says why
        keys.remove(CONTENT)
    return [key for key in WHOLE if key in keys] or keys


def said(made: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Some of what results were made with, for people."""
    shown = {key: made.get(key) for key in keys if key in made or key not in ("tool", "app")}
    return ", ".join(f"{key} {'none' if value is None else value}" for key, value in shown.items())
