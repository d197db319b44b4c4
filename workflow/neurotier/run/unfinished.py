"""Tables, figures and pages of a run that failed: they show a part, and Snakemake knows no difference to finished ones.

A target such as ``participants`` asks for what they are made from, and that is made first. A user who asks for such a
file by its path would hear that there is nothing to be done, since what is missing has been made by nobody yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import read_json, remove_whatever, write_json
from neurotier.core.places import Places


def note_unfinished(places: Places, page: Path, tables: Iterable[Path], others: Iterable[Path]) -> None:
    """Note a page of a part, with its tables and other files that are made with them.

    Of page and tables it is noted when they were written: those that Snakemake makes later have another time.
    """
    dated = {file: file.stat().st_mtime_ns for file in (page, *tables) if file.is_file()}
    undated = {file: 0 for file in sorted(others) if file.is_file()}
    noted = noted_in(places)
    noted[page.name] = {str(file.relative_to(places.results)): time for file, time in (dated | undated).items()}
    write_json(places.unfinished, noted)


def noted_in(places: Places) -> dict[str, dict[str, int]]:
    """Files of each unfinished page with their times, ns since 1970; nothing if the note is not there or damaged."""
    try:
        noted = read_json(places.unfinished)
    except (FileNotFoundError, StateError):
        return {}
    pages = noted.items() if isinstance(noted, dict) else ()
    return {page: files for page, files in pages if isinstance(files, dict)}


def forget_made(places: Places) -> None:
    """Forget the pages that have been made since, with their tables."""
    noted = noted_in(places)
    left = {page: files for page, files in noted.items() if is_unfinished(files_of(places, files))}
    if left != noted:
        write_json(places.unfinished, left)
    if not left:
        remove_whatever(places.unfinished)


def files_of(places: Places, noted: Mapping[str, int]) -> dict[Path, int]:
    """Noted files with their times, but for those outside of the results: the note may be planted."""
    return {(places.results / name).absolute(): time for name, time in noted.items() if places.holds(name)}


def is_unfinished(files: Mapping[Path, int]) -> bool:
    """Whether the page or a table is still as the run that failed has written it."""
    return any(file.is_file() and file.stat().st_mtime_ns == time for file, time in files.items())


def remove_asked_for(places: Places, targets: Sequence[str], remove: bool) -> list[str]:
    """Remove what is unfinished and asked for by its path, with all that is shown with it; lines that say so.

    Parameters
    ----------
    targets
        As the command line has them.
    remove
        Whether to do it; else it is only said what would be done.
    """
    if remove:
        forget_made(places)
    noted, lines = noted_in(places), []
    asked = {Path(target).absolute() for target in targets}
    for page, dated in list(noted.items()):
        files = files_of(places, dated)
        if asked.isdisjoint(files) or not is_unfinished(files):
            continue
        lines.append(f"{places.results / page} is of a run that failed; " + ("it is" if remove else "it would be"))
        lines[-1] += " made again, with its tables"
        if remove:
            for file in reversed(files):  # page and tables last: after a kill they tell that it goes on
                remove_whatever(file)
            del noted[page]
            write_json(places.unfinished, noted)
    return lines
