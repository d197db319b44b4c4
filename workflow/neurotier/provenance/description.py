"""Provenance in a dataset of derivatives: how they were made, for people, for ``neurotier remake`` and for BIDS.

``code/neurotier/ACTIVITY.json`` says how derivatives were made; ``prov/`` says the same in the terms of BIDS
provenance, as the extension proposal BEP028 was merged into the development version of the specification after 1.11:
activities, software and environments. Sidecars refer to the activity as ``GeneratedBy``. The validator does not know
``prov/`` yet, so ``.bidsignore`` names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neurotier.analysis.activity import How, identifier, uri
from neurotier.core.errors import InputError
from neurotier.core.files import write_json, write_text
from neurotier.core.foreign import open_file
from neurotier.core.places import short_hash
from neurotier.dataset.bids import LABEL
from neurotier.provenance.repository import ATTRIBUTES
from neurotier.provenance.source import RAW

HOW = Path("code", "neurotier")
"""Folder of the files that say how derivatives were made."""

GROUP = "prov-neurotier"
IGNORED = ("prov", "prov/**")

DESCRIBING = ("README", "dataset_description.json")
"""What describes derivatives with or without a dataset."""

WRITTEN = (".gitattributes", ".bidsignore", "code/neurotier", "prov")
"""What :func:`describe` writes."""


def how_file(activity: str) -> Path:
    """The file that says how derivatives were made, in their dataset."""
    return HOW / f"{activity}.json"


def owner_of(entry: str) -> str:
    """The participant whose own an entry of derivatives is by its name; empty if it is for all.

    >>> owner_of("sub-01.html"), owner_of("sub-01/anat"), owner_of("logs")
    ('sub-01', 'sub-01', '')
    """
    found = re.match(f"sub-{LABEL}", entry)
    return found[0] if found else ""


def describe(folder: Path, ways: Iterable[How]) -> None:
    """Write how derivatives were made into their dataset, beside what is said of earlier ones.

    Parameters
    ----------
    folder
        Derivatives of a site.
    ways
        How those that are there were made.
    """
    known = {file.stem: read_how(folder, file.stem) for file in sorted((folder / HOW).glob("*.json"))}
    for how in ways:
        if identifier(how) not in known:
            known[identifier(how)] = how
            write_json(folder / how_file(identifier(how)), how)
    for name, content in provenance(known).items():
        write_if_other(folder / "prov" / f"{GROUP}_{name}.json", json.dumps(content, indent=2) + "\n")
    table = f"provenance_label\tdescription\n{GROUP}\tHow neurotier has made these derivatives.\n"
    write_if_other(folder / "prov" / "provenance.tsv", table)
    add_lines(folder / ".bidsignore", IGNORED)
    add_lines(folder / ".gitattributes", [ATTRIBUTES])


def read_how(folder: Path, activity: str) -> How:
    """What a dataset says of an activity.

    Raises
    ------
    InputError
        If it is no file, or not one of neurotier's.
    """
    file = folder / how_file(activity)
    try:
        with open_file(folder, how_file(activity), str(file)) as opened:
            how: How = json.load(opened)
        if not {"neurotier", "name", "version", "options"} <= how.keys():
            raise ValueError
    except (OSError, ValueError, AttributeError):
        raise InputError("does not say how derivatives were made", where=str(file)) from None
    return how


def provenance(known: dict[str, How]) -> dict[str, Any]:
    """The content of the files of BIDS provenance, by their suffix.

    Parameters
    ----------
    known
        Identifier to how derivatives were made.
    """
    software, environments, activities = {}, {}, []
    for activity, how in sorted(known.items()):
        programs = [("neurotier", how["neurotier"]), (how["name"], how["version"])]
        for name, version in programs:
            software[software_of(name, version)] = {"Label": name, "Version": version}
        used = [f"bids::{RAW}"]
        if container := how.get("container"):
            environment = uri(f"container-{short_hash(str(container))}")
            label = f"Apptainer image {container['image']}, {container['digest']}"
            environments[environment] = {"Label": label, "EnvironmentVariables": container["environment"]}
            used.append(environment)
        activities.append(
            {
                "Id": uri(activity),
                "Label": label_of(how),
                "Command": f"neurotier remake {how_file(activity)}" + ("" if how.get("group") else " INPUTS"),
                "AssociatedWith": [software_of(name, version) for name, version in programs],
                "Used": used,
            }
        )
    content: dict[str, Any] = {"act": {"Activities": activities}}
    for suffix, name, objects in (("soft", "Software", software), ("env", "Environments", environments)):
        if objects:
            content[suffix] = {name: [{"Id": key, **value} for key, value in sorted(objects.items())]}
    return content


def label_of(how: How) -> str:
    """An activity in a line: a tool with its options, or an app with its arguments."""
    if how.get("group"):
        return " ".join([how["name"], "group", *how["options"].get("group_arguments", [])])
    if how.get("app"):
        return " ".join([how["name"], *how["options"]["arguments"]])
    return " ".join([how["name"], *(f"{name}={value}" for name, value in how["options"].items())])


def software_of(name: str, version: str) -> str:
    """The BIDS URI of a program."""
    label = "".join(letter for letter in name if letter.isascii() and letter.isalnum())
    return uri(f"{label or 'app'}-software-{short_hash(f'{name} {version}')}")


def write_if_other(file: Path, text: str) -> None:
    """Write a file unless it has this text already: times of files tell git where to look."""
    if not file.exists() or file.read_text() != text:
        write_text(file, text)


def add_lines(file: Path, lines: Iterable[str]) -> None:
    """Have a file end in some lines, unless they are in it."""
    text = file.read_text() if file.exists() else ""
    missing = [line for line in lines if line not in text.splitlines()]
    if missing:
        write_text(file, text + ("" if text.endswith("\n") or not text else "\n") + "\n".join([*missing, ""]))
