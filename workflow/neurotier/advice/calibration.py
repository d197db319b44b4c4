"""Calibration: who is analysed first, to learn what the analysis costs, and the records of what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neurotier.advice.observed import ObservedJob, observe
from neurotier.core.errors import InputError, NeurotierError, SettingsError, SourceError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.dataset.bids import Image
from neurotier.dataset.contents import check_known_somewhere, is_present
from neurotier.run.disturbance import DISTURBED
from neurotier.run.jobs import load_dataset
from neurotier.run.profile_tables import Record

ImagesByParticipant = Mapping[str, Sequence[Image]]


def size_of(images: Sequence[Image]) -> int:
    """Size of a participant's images by the index, bytes."""
    return sum(image.size_bytes or 0 for image in images)


def choose(sizes: Mapping[str, int], count: int) -> list[str]:
    """Participants near the median size, but of different sizes, to show how time grows with size.

    They divide the participants, sorted by size, into equal parts: two are those at a third and at two thirds.

    Examples
    --------
    >>> choose({"a": 90, "b": 10, "c": 50, "d": 30, "e": 70, "f": 20, "g": 80}, 2)
    ['d', 'e']
    >>> choose({"a": 1, "b": 2}, 5)
    ['a', 'b']
    """
    ranked = sorted(sizes, key=lambda name: (sizes[name], name))
    if count >= len(ranked):
        return ranked
    last = len(ranked) - 1
    return [ranked[round(last * part / (count + 1))] for part in range(1, count + 1)]


def choose_calibration(participants: ImagesByParticipant, settings: Settings, places: Places) -> list[str]:
    """Who is analysed first: participants who are done already, else some whose images are here, else any.

    Raises
    ------
    SourceError
        If the chosen participants' images are neither here nor known anywhere.
    """
    count, sizes = settings.advice.participants, {name: size_of(images) for name, images in participants.items()}
    done = {name: size for name, size in sizes.items() if places.record(name).exists()}
    if len(done) >= min(count, len(sizes)):
        return choose(done, count)
    dataset, links_to = load_dataset(places).path, settings.dataset.links_to
    missing = {
        name: [image.path for image in images if not is_present(dataset, image.path, links_to)]
        for name, images in participants.items()
    }
    here = {name: size for name, size in sizes.items() if not missing[name]}
    if len(here) >= min(count, len(sizes)):
        return choose(here, count)
    chosen = choose(sizes, count)
    for path in (path for name in chosen for path in missing[name]):
        try:
            check_known_somewhere(dataset, path)
        except NeurotierError as error:
            raise SourceError(
                f"cannot be analysed as a calibration: {error.what}",
                where=path,
                fix="name in advice.calibration the results folder of another run with the same tool",
            ) from None
    return chosen


def read_observed(settings: Settings, places: Places, folder: Path | None) -> list[ObservedJob]:
    """Participant jobs of this tool with these options, from their records.

    Those of runs that others disturbed count only if there are no others.

    Parameters
    ----------
    folder
        Results folder of another run; ``None`` for the run's own.

    Raises
    ------
    SettingsError, InputError
        If the other folder is no results folder, or has no record of this tool.
    """
    where = places if folder is None else Places(folder, folder, folder, folder, folder)
    table = where.index / "images.tsv"
    if folder is not None and not table.exists():
        raise SettingsError(
            "is not the results folder of a run", where=f"config key advice.calibration: {folder}", fix="correct it"
        )
    sizes = Counter[str]()
    for row in read_table(table, "images"):
        sizes[row["participant"]] += row["size_bytes"] or 0
    records = [read_json(where.record(name)) for name in sizes if where.record(name).exists()]
    facts = {file.stem: read_json(file) for file in where.runs.glob("*.json")}
    asked = analysis(settings.to_json())
    same = [
        record for record in records if record["run"] in facts and analysis(facts[record["run"]]["settings"]) == asked
    ]
    if not same and folder is not None:
        tools = sorted({str(record["tool"]) for record in records})
        raise InputError(
            f"has no record of {asked['name']} with these options" + (f", but of {', '.join(tools)}" if tools else ""),
            where=f"config key advice.calibration: {folder}",
            fix="name the results folder of a run with the same tool",
        )
    quiet = [record for record in same if DISTURBED not in (facts[record["run"]].get("row") or {}).get("valid", "")]
    return [observe(record, sizes[record["participant"]]) for record in quiet or same]


def analysis(settings: Mapping[str, Any]) -> Record:
    """The settings that decide what an analysis costs."""
    app, tool = settings["app"], settings["tool"]
    if app["image"]:
        return {"name": app["image"], "arguments": app["arguments"]}
    return {"name": tool["name"], "options": tool["options"], "image": tool["image"] and settings["in_containers"]}
