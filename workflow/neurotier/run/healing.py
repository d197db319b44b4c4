"""Healing: find files that were lost or damaged since the last run, so that they are made again.

Snakemake only checks whether the outputs of a rule exist. It does not notice that a participant's folder lacks a mask,
that a record was truncated when a disk failed, or that a table was emptied. So, before Snakemake looks, outputs that
are not as they were written are removed; Snakemake then makes just these again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from neurotier.analysis.staging import first_missing
from neurotier.core.configuration import WORKLOADS
from neurotier.core.errors import one_line
from neurotier.core.files import Facts, read_json_or_empty, read_or_empty, remove_path, write_json
from neurotier.core.places import Places, participant_of
from neurotier.run.adoption import last_facts
from neurotier.run.participants import OF_ANALYSIS, Made, checksum_of

PAGE_OF = {
    "campaign": "comparison",
    **{name: name for name in ("comparison", "published", "probe", *WORKLOADS, "advice", "bigbrain")},
}
"""The page of each folder that has one; tables and figures in other folders belong to the run's report."""

LISTED_FOLDERS = {*PAGE_OF, "index", "profile", "group", "figures", "derivatives"}
"""Folders of the results whose files are listed at the end of a run."""

QUICKLY_MADE = ("profile", "group", "figures", "comparison", "report.html", "comparison.html")
"""Outputs that are made from records in seconds; measurements and predictions, which are made once, are not among
them."""

SAVED = {"sourcedata", "code", "prov"}
"""Folders of a site's derivatives that are written when these are saved as a dataset: git tracks their content."""

ADDED_TO = {".bidsignore", ".gitattributes"}
"""Files that an app may write, and to which lines are added when its derivatives are saved as a dataset."""

MADE_IN = {"obtain_image": "image.json", "place_caches": "caches.json"}
"""Steps whose records are not outputs of a rule, and the file that each makes: making that file again renews the
record."""

NO_RULES = {"records", "app", "logs", "failures"} | SAVED
"""Folders whose files no rule makes or needs; records are checked by their content, not by their size."""

OF_RUN = {"condition.json", "runs.tsv", "profile.tsv", "traffic.tsv"}
"""The files of each run of a campaign that a comparison reads."""

SHOWN = 3

LOOK_AGAIN_S = 0.5
"""Pause before a damaged metadata record of Snakemake is checked again, s: another run may be writing it."""

Whole = dict[str, Made]
"""How each participant with a whole record and whole derivatives was analysed."""

OutputsOf = Callable[[Path], list[Path]]
"""Returns all files made by the rule that makes a given file; none if no rule makes it, that is, if it is the
user's."""


class Damage(NamedTuple):
    """A damaged or lost file, and what to do about it.

    Attributes
    ----------
    files
        Files to remove, so that Snakemake makes the lost one again.
    reason
        What is wrong, for people.
    again
        Whether the removed files can be made again.
    """

    files: tuple[Path, ...]
    reason: str
    again: bool = True


def find_damage(places: Places, outputs_of: OutputsOf, by_app: bool, selection: str, whole: Whole) -> list[Damage]:
    """All damage in a results folder; files that no rule makes are the user's, and not checked.

    Parameters
    ----------
    places
        Places of the results.
    outputs_of
        Returns the files that are made together with a file.
    by_app
        Whether an app, not a tool, made these results.
    selection
        The selection that the index should have (:attr:`neurotier.run.plan.Plan.selection`).
    whole
        Filled in with the participants whose record and derivatives are whole.
    """
    damages = [
        *damaged_records(places, by_app, whole),
        *damaged_json(places, outputs_of),
        *damaged_index(places, selection),
        *damaged_outputs(places, outputs_of),
        *lost_datasets(places),
    ]
    return list({damage.files: damage for damage in reversed(damages)}.values())[::-1]  # the first reason is kept


def damaged_records(places: Places, by_app: bool, whole: Whole) -> Iterator[Damage]:
    """Records that are unreadable, or whose derivatives are missing or differ in size from what the record lists.

    The other participants are added to ``whole``, with how they were analysed.
    """
    for file in sorted(places.records.rglob("*.json")):
        participant, record = participant_of(file, places.records), read_json_or_empty(file)
        if not record:
            yield Damage((file,), f"{file} is damaged")
        elif name := first_lost(record, places.analysed(participant, by_app)):
            yield Damage((file,), f"{participant}: {name} is not as it was written")
        else:
            whole[participant] = {key: record.get(key) for key in OF_ANALYSIS}


def first_lost(record: Facts, folder: Path) -> str:
    """The first item of a record's list that is missing in a folder or has another size; empty if all is as written."""
    try:
        listed = {path: facts for path, facts in record.get("derivatives", {}).items() if path not in ADDED_TO}
        return first_missing(listed, folder) if folder.is_dir() else "its folder"
    except (AttributeError, TypeError, ValueError):
        return "its record"


def whole_records(places: Places, by_app: bool) -> Whole:
    """How participants were analysed whose record and derivatives are whole."""
    made = Whole()
    list(damaged_records(places, by_app, made))
    return made


def damaged_json(places: Places, outputs_of: OutputsOf) -> Iterator[Damage]:
    """Unreadable JSON files, which are made again or not needed; and sites that have lost derivatives of a group
    level."""
    steps = places.profile / "steps"
    runs = places.bigbrain_run("")
    for file in sorted(runs.glob("*/*/*/*/**/*.json")):
        if not read_json_or_empty(file):  # the run is measured as a whole, and so repeated as a whole
            run = runs.joinpath(*file.relative_to(runs).parts[:4])
            yield Damage((file, run / "plan.json", run / "checked.json"), f"{file} is damaged")
    for folder in (places.failures, steps, places.index, places.runs):
        for file in sorted(folder.rglob("*.json")):
            record = read_json_or_empty(file)
            if not record and file.parent == places.runs:
                yield Damage((file,), f"{file} is damaged: the facts of that run are lost", again=False)
            elif not record:
                files = outputs_with(file, places, outputs_of)
                if file.stem in MADE_IN:
                    files.append(places.index / MADE_IN[file.stem])
                if files or places.index not in file.parents:
                    yield Damage((file, *files), f"{file} is damaged")
            elif file.name == "run_group_level.json":
                site = places.derivatives / file.parent.relative_to(steps)
                if name := first_lost(record, site):
                    yield Damage((file,), f"{site}: {name} is not as it was written")


def lost_datasets(places: Places) -> Iterator[Damage]:
    """Sites whose derivatives were saved as a DataLad dataset that no longer exists."""
    saved = read_json_or_empty(places.saved)
    for site in {*saved, ""} if saved else ():  # "" is the dataset that contains those of the sites
        repository = places.derivatives / site / ".git"
        if not (repository / "HEAD").is_file():
            yield Damage((places.saved,), f"{repository} is gone")


def damaged_index(places: Places, selection: str) -> Iterator[Damage]:
    """The index of images, if it or a file made with it is not as it was written, or if it was made for another
    selection.

    Snakemake itself notices another selection only if the results folder has not been moved since.
    """
    index, table = places.index, places.images_table
    if not os.path.lexists(table):
        return
    # without these, Snakemake would end with exit code 0
    lost = [index / name for name in ("skipped.tsv", "images.json", "skipped.json") if not read_or_empty(index / name)]
    noted, written = read_or_empty(index / "images.sha256"), checksum_of(read_or_empty(table)).encode()
    if not noted.startswith(written):
        lost.append(table)
    if lost:
        yield Damage((table,), f"{lost[0]} is not as it was written")
    elif not read_json_or_empty(places.dataset_facts):
        yield Damage((table,), f"{table} is of a dataset that is not known any more")
    elif noted != written + selection.encode():
        # The dataset is cloned again only if the clone is known to be of another version or sites: if the source is
        # gone, the clone is all there is.
        is_other = noted.count(b"#") > 1 and selection.split("\n")[0].encode() not in noted
        files = (table, places.dataset_facts) if is_other else (table,)
        yield Damage(files, f"{table} is of another selection")


def damaged_outputs(places: Places, outputs_of: OutputsOf) -> Iterator[Damage]:
    """Tables, figures and pages that are missing or have another size than at the end of the last run.

    Snakemake makes a missing file only if something else needs it, so the page that shows it is removed as well.
    Without the list of sizes damage cannot be detected, so all outputs that are made in seconds are made again.
    """
    known = read_json_or_empty(places.outputs)
    if not known and "ended_s" in (last_facts(places) or {"ended_s"}):  # a killed run has not listed its outputs
        no_files = (file for like in ("*.html", "*/*.tsv") for file in places.results.glob(like) if not file.is_file())
        if files := (*quickly_made(places, outputs_of), *filter(outputs_of, no_files)):
            yield Damage(files, f"{places.outputs}, which lists the outputs, is gone or damaged")
        return
    for name, size_bytes in known.items():
        file = places.results / name
        if places.holds(name) and not (file.is_file() and file.stat().st_size == size_bytes):
            page = places.results / f"{PAGE_OF.get(name.split('/')[0], 'report')}.html"
            if together := outputs_with(file, places, outputs_of):
                yield Damage((file, *together, page), f"{file} is not as it was written")


def remove_partial(places: Places, outputs_of: OutputsOf, targets: Collection[str]) -> None:
    """Remove pages and their tables if one of these files is a target by its path and the last run failed.

    They may show only a part of the results. A target such as ``all`` also needs what they are made from, and makes
    that first; but if only the page is asked for, Snakemake would say that there is nothing to be done.
    """
    if last_facts(places).get("succeeded"):
        return
    made = quickly_made(places, outputs_of, {*QUICKLY_MADE, "bigbrain", "bigbrain.html"})
    if not {*map(str, made)}.isdisjoint(targets):
        for file in made:
            remove_path(file)


def quickly_made(places: Places, outputs_of: OutputsOf, of: Collection[str] = QUICKLY_MADE) -> list[Path]:
    """Tables, figures and pages that are made in seconds: those in the given folders, or in a folder ``figures`` below
    one of them."""
    names = outputs_in(places, outputs_of, of)
    return [places.results / name for name in names if len(name.parts) < 3 or name.parts[1] == "figures"]


def outputs_with(file: Path, places: Places, outputs_of: OutputsOf) -> list[Path]:
    """Files to remove so that Snakemake makes a file, or repeats a campaign's run; none if no rule makes it."""
    files = outputs_of(file)
    if file.suffix == ".json":  # a table's sidecar is written with it
        files += outputs_of(file.with_suffix(".tsv"))
    if (runs := places.campaign / "runs") in file.parents and file.name in OF_RUN:
        files.append(runs.joinpath(*file.relative_to(runs).parts[:2], "condition.json"))
    if files and places.campaign in file.parents:
        files.append(places.campaign / "done.tsv")
    return files


def damage_lines(damages: list[Damage], removed: bool) -> list[str]:
    """Messages for the user about the damage, a few lines at most."""
    done = "will be made again when it is needed" if removed else "would be made again"
    # Two kinds of damage to one file may give the same line.
    said = (f"{damage.reason}; it {done}" if damage.again else damage.reason for damage in damages)
    lines = [f"neurotier: {one_line(line)}" for line in dict.fromkeys(said)]
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"neurotier: the same of {rest} more"] if rest > 0 else [])]


def note_outputs(places: Places, outputs_of: OutputsOf) -> None:
    """List outputs and their sizes at the end of a run, for :func:`damaged_outputs`."""
    listed = outputs_in(places, outputs_of, {*LISTED_FOLDERS, *(file.name for file in places.results.glob("*.html"))})
    write_json(places.outputs, {str(name): (places.results / name).stat().st_size for name in listed})


def outputs_in(places: Places, outputs_of: OutputsOf, of: Collection[str]) -> list[Path]:
    """Outputs in some folders of the results, or among its pages; of a campaign's runs only the files that are
    compared.

    Links are not followed. Folders in the derivatives that are not of a site are the user's, for example another
    pipeline's.
    """
    sites = [places.derivatives / site for site in read_json_or_empty(places.dataset_facts).get("sites", ())]
    names = (file.relative_to(places.results) for file in files_of_rules(places) if stat.S_ISREG(file.lstat().st_mode))
    return [
        name
        for name in names
        if name.parts[0] in of
        and not name.name.startswith(".")
        and ("runs" not in name.parts or name.name in OF_RUN)
        and (name.parts[0] != "derivatives" or places.results / name.parent in sites)
        and outputs_with(places.results / name, places, outputs_of)
    ]


def files_of_rules(places: Places) -> Iterator[Path]:
    """Files of the results that rules may make or need: participants' folders and those of records have none."""
    for root, names, files in os.walk(places.results):
        names[:] = [name for name in names if not name.startswith(("sub-", ".")) and name not in NO_RULES]
        yield from (Path(root, name) for name in files)


def remove_damaged_metadata() -> None:
    """Remove damaged metadata records of Snakemake, which would make it fail; names that begin with ``@`` are
    subfolders."""
    walk = os.walk(".snakemake/metadata")
    known = [Path(root, name) for root, names, files in walk for name in [*names, *files] if not name.startswith("@")]
    damaged = [file for file in known if not read_json_or_empty(file)]
    time.sleep(LOOK_AGAIN_S * bool(damaged))
    for file in damaged:
        if not read_json_or_empty(file):
            remove_path(file)


def correct_future_dates(places: Places) -> None:
    """Set the time stamps of files from the future to now: Snakemake would refuse to use them, suspecting a wrong
    clock. The same holds for the folder of mosaics, which a rule makes, and for the demonstration dataset."""
    now_s = time.time()
    for file in (*files_of_rules(places), places.mosaics, *places.datasets.glob("demo-*.json")):
        with suppress(OSError):  # another user's file
            if not stat.S_ISLNK((facts := file.lstat()).st_mode) and facts.st_mtime > now_s:
                os.utime(file, (now_s, now_s))
