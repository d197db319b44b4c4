"""Provenance in a dataset of derivatives: how they were made, for readers, for ``neurotier remake`` and for BIDS.

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

from neurotier.analysis.activity import URI, How, identifier, label_of
from neurotier.core.errors import InputError
from neurotier.core.files import Record, write_bytes, write_json, write_text
from neurotier.core.foreign import blaming, open_file
from neurotier.core.places import short_hash
from neurotier.dataset.bids import LABEL

HOW = Path("code", "neurotier")
"""Folder of the files that say how derivatives were made, each called by its activity."""

RAW = "sourcedata/raw"
"""Where the raw dataset is in a dataset of derivatives, registered by address and commit (YODA)."""

GROUP = "prov-neurotier"
TABLE = f"provenance_label\tdescription\n{GROUP}\tHow neurotier has made these derivatives.\n"

IGNORED = ("prov", "prov/**")

ATTRIBUTES = ("* annex.largefiles=(((mimeencoding=binary)and(largerthan=0))or(largerthan=1mb))",)
"""What goes into the annex; text goes into git, as with DataLad's procedure ``text2git``, unless it is large."""

DESCRIBING = ("README", "dataset_description.json")
"""Files that describe derivatives with or without a dataset."""

WRITTEN = (".gitattributes", ".bidsignore", "code/neurotier", "prov")
"""Files that :func:`describe` writes."""


def command_of(how: How, inputs: str) -> str:
    """The command that makes derivatives again; the group level takes no inputs."""
    return f"neurotier remake {HOW}/{identifier(how)}.json" + ("" if how.get("group") else f" {inputs}")


def owner_of(entry: str) -> str:
    """The participant that an entry of derivatives belongs to, by its name; empty if it is for all.

    >>> owner_of("sub-01.html"), owner_of("sub-01/anat"), owner_of("logs")
    ('sub-01', 'sub-01', '')
    """
    found = re.match(f"sub-{LABEL}", entry)
    return found[0] if found else ""


def describe(folder: Path, ways: Iterable[How]) -> None:
    """Write into a dataset how its derivatives were made, keeping what it says about earlier ones.

    Parameters
    ----------
    folder
        Derivatives of a site.
    ways
        How the existing ones were made.
    """
    for activity, how in {identifier(how): how for how in ways}.items():
        write_json(folder / HOW / f"{activity}.json", how)
    known = {file.stem: read_how(folder, file.stem) for file in (folder / HOW).glob("*.json")}
    for name, content in provenance(known).items():
        write_json(folder / "prov" / f"{GROUP}_{name}.json", content)
    write_text(folder / "prov" / "provenance.tsv", TABLE)
    add_lines(folder / ".bidsignore", IGNORED)
    add_lines(folder / ".gitattributes", ATTRIBUTES)


def add_lines(file: Path, wanted: Iterable[str]) -> None:
    """Add lines to a file that lacks some of them; an app may have written the file, too."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    write_bytes(file, b"\n".join([*lines, *(line for line in map(str.encode, wanted) if line not in lines), b""]))


def read_how(folder: Path, activity: str) -> How:
    """What a dataset says about an activity.

    Raises
    ------
    InputError
        If it is not a file, or not one of neurotier's.
    """
    below = HOW / f"{activity}.json"
    file = folder / below
    try:
        with blaming(file), open_file(folder, below) as opened:
            how: How = json.load(opened)
        if not {"neurotier", "name", "version", "options"} <= how.keys():
            raise ValueError
    except (OSError, ValueError, AttributeError):
        raise InputError("does not say how derivatives were made", file) from None
    return how


def provenance(known: dict[str, How]) -> Record:
    """The content of the files of BIDS provenance, by their suffix.

    Parameters
    ----------
    known
        Identifier to how derivatives were made.
    """
    software: Record = {}
    environments, activities = {}, []
    for activity, how in sorted(known.items()):
        programs = {
            f"{URI}{label_of(name)}-software-{short_hash(f'{name} {version}')}": {"Label": name, "Version": version}
            for name, version in (("neurotier", how["neurotier"]), (how["name"], how["version"]))
        }
        software |= programs
        used = [f"bids::{RAW}"]
        if container := how.get("container"):
            label = f"Apptainer image {container['image']}, {container['digest']}"
            used.append(f"{URI}container-{short_hash(str(container))}")
            environments[used[-1]] = {"Label": label, "EnvironmentVariables": container["environment"]}
        activities.append(
            {
                "Id": f"{URI}{activity}",
                "Label": line_of(how),
                "Command": command_of(how, "INPUTS"),
                "AssociatedWith": list(programs),
                "Used": used,
            }
        )
    content: Record = {"act": {"Activities": activities}}
    for suffix, name, objects in (("soft", "Software", software), ("env", "Environments", environments)):
        if objects:
            content[suffix] = {name: [{"Id": key, **value} for key, value in sorted(objects.items())]}
    return content


def line_of(how: How) -> str:
    """An activity in one line: a tool with its options, or an app with its arguments."""
    options = how["options"]
    words = [f"{name}={value}" for name, value in options.items()]
    if how.get("app"):
        words = ["group", *options.get("group_arguments", [])] if how.get("group") else options["arguments"]
    return " ".join([how["name"], *words])
