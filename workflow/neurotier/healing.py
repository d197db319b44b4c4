"""Healing: what a results folder has lost since its last run is found, and made again.

Snakemake looks whether the outputs of a rule exist. It does not see that a participant's folder lacks a mask, that a
record was cut short when a disk failed, or that somebody emptied a table. So before Snakemake looks, whatever is not
as it was written is removed, and Snakemake makes that again, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.analysis.staging import lacking
from neurotier.errors import StateError
from neurotier.files import remove_whatever, write_bytes, write_json, write_text
from neurotier.places import Places
from neurotier.tables import read_table

LISTED_FOLDERS = ("index", "profile", "group", "figures", "comparison", "published", "probe", "sweep", "advice")
"""Folders of the results whose files are listed when a run ends: what tables, figures and pages are made of."""

PAGES = {name: name for name in ("comparison", "published", "probe", "sweep", "advice")}
"""Folders whose tables and figures are shown by a page of their own; those of the others are shown by the report."""

RECORDS = {"records", "steps"}
"""Folders whose files are looked at one by one, and not by size."""

IDENTITY, KIND = re.compile(rb"[0-9a-f]{16}\n"), re.compile(rb"(tool|app)\n")
"""What files of the state that are not JSON hold."""

SHOWN = 3


@dataclass(frozen=True)
class Damage:
    """Something that is to be made again.

    Attributes
    ----------
    files
        What to remove for that: the outputs that Snakemake looks for.
    reason
        What is wrong, for people.
    again
        Whether what is removed can be made again.
    """

    files: tuple[Path, ...]
    reason: str
    again: bool = True


def find_damage(places: Places, by_app: bool) -> list[Damage]:
    """What is not as it was written.

    Parameters
    ----------
    places
        Of the results folder.
    by_app
        Whether an app made these results; else a tool.
    """
    if not places.state.is_dir():
        return []
    found = [
        *damaged_json(places),
        *lost_derivatives(places, by_app),
        *lost_sites(places),
        *damaged_index(places),
        *damaged_campaign(places),
        *damaged_outputs(places),
    ]
    return list({damage.files: damage for damage in reversed(found)}.values())[::-1]  # the first reason counts


def damaged_json(places: Places) -> Iterator[Damage]:
    """State and records that cannot be read: each is made again, or is not needed."""
    for folder in (places.failures, places.profile / "records", places.profile / "steps", places.index):
        for file in sorted(folder.rglob("*.json")):
            if read(file) is None:
                yield Damage(tuple(outputs_with(file, places)), f"{file} is damaged")
    for file in sorted((places.state / "got").rglob("*")):
        if not file.is_dir() and read(file) is None:
            yield Damage((file,), f"{file} is damaged")
    for file in sorted(places.runs.glob("*.json")):
        if read(file) is None:
            yield Damage((file,), f"{file} is damaged: what it said of that run is lost", again=False)
    for file, whole in ((places.state / "identity", IDENTITY), (places.kind, KIND)):
        if os.path.lexists(file) and not whole.fullmatch(content_if_any(file)):
            yield Damage((file,), f"{file} is damaged")


def lost_derivatives(places: Places, by_app: bool) -> Iterator[Damage]:
    """Participants whose derivatives are not all there, or not as large as they were."""
    folder = places.profile / "records"
    for file in sorted(folder.rglob("sub-*.json")):
        record = read(file)
        if record is None:
            continue
        participant = file.relative_to(folder).with_suffix("").as_posix()
        analysed = places.analysed(participant, by_app)
        name = lacking(record.get("derivatives", {}), analysed) if analysed.is_dir() else "its folder"
        if name:
            yield Damage((file,), f"{participant}: {name} is not as it was written")


def lost_sites(places: Places) -> Iterator[Damage]:
    """Sites whose group level has left more than is there now."""
    folder = places.profile / "steps"
    for file in sorted(folder.rglob("run_group_level.json")):
        record = read(file) or {}
        site = file.parent.relative_to(folder).as_posix()
        derivatives = places.derivatives / site
        name = lacking(record.get("derivatives", {}), derivatives)
        if name:
            yield Damage((derivatives / "dataset_description.json",), f"{site}: {name} is not as it was written")


def damaged_index(places: Places) -> Iterator[Damage]:
    """The index of images, if it is not the one that was written, or nothing says any more what it is of."""
    table, noted = places.index / "images.tsv", read(places.index_checksum)
    if not table.exists():
        return
    for file in (places.index / "skipped.tsv", *(places.index / f"{stem}.json" for stem in ("images", "skipped"))):
        if not content_if_any(file):  # of the same rule: Snakemake would end with exit 0 without the analyses
            yield Damage((table,), f"{file} is not as it was written")
            return
    if noted is not None and noted.get("sha256") != checksum(table):
        yield Damage((table,), f"{table} is not as it was written")
    elif read(places.index / "dataset.json") is None:
        yield Damage((table,), f"{table} is of a dataset that is not known any more")


def damaged_campaign(places: Places) -> Iterator[Damage]:
    """Runs of a finished campaign that are not there any more, or not known: they are done again, and no others.

    Of a campaign that is not finished Snakemake finds that out itself.
    """
    for file in sorted((places.campaign / "outputs").glob("*.json")):
        if read(file) is None:
            yield Damage((file,), f"{file} is damaged: the next run says what outputs must be", again=False)
    done = places.campaign / "done.tsv"
    if not done.exists():
        return
    try:
        folders = [places.campaign / "runs" / row["folder"] for row in read_table(done, "plan")]
    except (StateError, LookupError, TypeError, ValueError):
        yield Damage((done,), f"{done} is damaged")
        return
    for folder in folders:
        if read(folder / "condition.json") is None:
            yield Damage((folder / "condition.json", done), f"the run in {folder} is damaged")


def damaged_outputs(places: Places) -> Iterator[Damage]:
    """Tables, figures and pages that have another size than at the end of the last run, or are gone.

    Snakemake makes what is missing only where something else needs it; so the page that shows it goes, too.
    Without the list of sizes nobody can tell, and what is made in seconds is made again.
    """
    known = read(places.outputs)
    if known is None and not last_was_killed(places):
        if files := tuple(quickly_made(places)):
            yield Damage(files, f"{places.outputs}, which lists the outputs, is gone or damaged")
        return
    for name, size_bytes in (known or {}).items():
        file = places.results / name
        if not file.is_file() or file.stat().st_size != size_bytes:
            page = places.results / f"{PAGES.get(name.split('/')[0], 'report')}.html"
            yield Damage((*outputs_with(file, places), page), f"{file} is not as it was written")


def last_was_killed(places: Places) -> bool:
    """Whether the last run did not come to its end: then it has listed nothing."""
    runs = [facts for file in places.runs.glob("*.json") if (facts := read(file)) is not None]
    return bool(runs) and "ended_s" not in max(runs, key=lambda facts: facts.get("started_s", 0.0))


def quickly_made(places: Places) -> Iterator[Path]:
    """Tables, figures and pages that are made from records in seconds; not what was measured, or predicted once."""
    for folder in (places.profile, places.group, places.figures, places.comparison, places.comparison / "figures"):
        yield from (file for file in sorted(folder.glob("*.*")) if file.is_file() and not file.name.startswith("."))
    yield from (page for page in (places.results / "report.html", places.results / "comparison.html") if page.exists())


def outputs_with(file: Path, places: Places) -> list[Path]:
    """What Snakemake must miss, so that a file is made again: outputs of the rule that writes it."""
    if file.parent == places.mosaics:
        return [places.mosaics]
    if file.parent == places.index and file.stem in ("skipped", "images"):
        return [file, places.index / "images.tsv"]
    table = file.with_suffix(".tsv")
    if file.suffix == ".json" and table.exists():  # a table's sidecar is written with it
        return [file, table]
    return [file]


def remove(damages: list[Damage]) -> None:
    """Remove what is damaged, so that Snakemake makes it again."""
    for damage in damages:
        for file in damage.files:
            remove_whatever(file)


def lines(damages: list[Damage], removed: bool) -> list[str]:
    """What to tell the user of it, a few lines at most."""
    done = "is made again" if removed else "would be made again"
    shown = [f"neurotier: {damage.reason}" + (f"; it {done}" if damage.again else "") for damage in damages[:SHOWN]]
    rest = len(damages) - SHOWN
    return [*shown, *([f"neurotier: the same of {rest} more"] if rest > 0 else [])]


def note_outputs(places: Places) -> None:
    """List what is there at the end of a run, for :func:`damaged_outputs`."""
    folders = [places.results / name for name in LISTED_FOLDERS]
    files = [*places.results.glob("*.html"), *places.campaign.glob("*.tsv")]
    files += [file for folder in folders for file in folder.rglob("*")]
    known = {
        file.relative_to(places.results).as_posix(): file.stat().st_size
        for file in (*files, *descriptions(places.derivatives))
        if file.is_file() and not file.is_symlink() and not file.name.startswith(".") and not RECORDS & set(file.parts)
    }
    write_json(places.outputs, known)


def descriptions(derivatives: Path) -> Iterator[Path]:
    """What describes each site's derivatives; participants' folders are not entered."""
    for root, names, files in os.walk(derivatives):
        names[:] = [name for name in names if not name.startswith(("sub-", "."))]
        yield from (Path(root, name) for name in files)


def forget_outputs(places: Places) -> None:
    """A run begins that may write all of them anew: if it is killed, nobody knows their sizes."""
    places.outputs.unlink(missing_ok=True)


def forget_markers(places: Places) -> None:
    """Short-lived markers of a run that was killed: what they say of images and batches need not hold any more."""
    for folder in (places.state / "got", places.state / "batches"):
        remove_whatever(folder)


def write_and_keep(places: Places, file: Path, data: Any) -> None:
    """Write a file of the index that every analysis waits for, and a copy for :func:`restore_kept`."""
    write_json(file, data)
    write_json(places.kept / file.absolute().relative_to(places.index.absolute()), data)


def lost_kept(places: Places) -> dict[Path, Path]:
    """Files of the index that were lost or damaged, with the copy of each that is whole."""
    copies = {places.index / copy.relative_to(places.kept): copy for copy in sorted(places.kept.rglob("*.json"))}
    return {file: copy for file, copy in copies.items() if not is_json(file) and is_json(copy)}


def restore_kept(lost: Mapping[Path, Path]) -> None:
    """Put lost files of the index back, as old as they were: Snakemake shall not take them for new ones."""
    for file, copy in lost.items():
        remove_whatever(file)
        write_bytes(file, content(copy))
        os.utime(file, ns=(copy.stat().st_mtime_ns, copy.stat().st_mtime_ns))


def is_json(file: Path) -> bool:
    """Whether a file is there and holds JSON."""
    try:
        json.loads(content(file))
    except (OSError, ValueError):
        return False
    return True


def restore_state(places: Places) -> None:
    """What a run writes once at its start, and has to be there though nothing is left to run."""
    if not places.kind.exists() and (places.profile / "records").is_dir():  # else nobody has made anything yet
        write_text(places.kind, "app\n" if (places.results / "app").is_dir() else "tool\n")
    if not places.identity:
        write_text(places.state / "identity", secrets.token_hex(8) + "\n")


def note_index(places: Places) -> None:
    """Note the checksum of the index of images, for :func:`damaged_index`."""
    write_json(places.index_checksum, {"sha256": checksum(places.index / "images.tsv")})


def content(file: Path) -> bytes:
    """What a file holds; nothing if something else is there, such as a FIFO, which would block its reader for ever."""
    return file.read_bytes() if stat.S_ISREG(file.lstat().st_mode) else b""


def content_if_any(file: Path) -> bytes:
    """What a file holds; nothing if it is not there, or something else is."""
    try:
        return content(file)
    except OSError:
        return b""


def checksum(file: Path) -> str:
    """SHA-256 of a small file."""
    return hashlib.sha256(content(file)).hexdigest()


def read(file: Path) -> dict[str, Any] | None:
    """A JSON object; ``None`` if there is none, or it is damaged."""
    try:
        found = json.loads(content(file))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
