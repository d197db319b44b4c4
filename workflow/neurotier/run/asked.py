"""What a user asks apart from a run: for a folder to work in, and a profile of a cluster; of a results folder, for its
pages, its jobs on a cluster and the container images in its store; and for a description of what was measured."""

from __future__ import annotations

import os
import shutil
import stat
import webbrowser
from pathlib import Path

from neurotier.analysis.rehearsal.description import describe
from neurotier.containers.store import DAY_S, remove_unused, stored_images, users_of
from neurotier.core.errors import SettingsError, TierError
from neurotier.core.files import made_whole, write_text
from neurotier.core.installed import ROOT
from neurotier.core.places import Places
from neurotier.core.private import refuse_planted
from neurotier.core.quantities import size, utc
from neurotier.core.settings import Settings
from neurotier.core.tiers import tiers_of
from neurotier.run.adoption import end_jobs, latest_run, left_jobs, prefix_of
from neurotier.run.head import acquire, refuse_planted_results
from neurotier.run.images import digests_used
from neurotier.run.jobs import forget_stopped, load_settings


def show_cluster_jobs(results: Path, end_them: bool) -> int:
    """Print the cluster jobs of runs that have not ended, each with its state and, if it waits, Slurm's reason; and end
    them before, if asked. The exit code of the process.

    Raises
    ------
    BusyError
        If they are to be ended, and their run lives.
    """
    places = Places.from_settings(own_settings(results) if end_them else load_settings(results))
    if end_them:
        acquire(places)
        end_jobs(*left_jobs(places), "", lambda line: print(line, flush=True))
        forget_stopped(places, latest_run(places))
    jobs, others = left_jobs(places)
    for number, job in jobs.items():
        print(f"{number}\t{job.said}\t{job.name.removeprefix(prefix_of(places))}")
    for number, run in others.items():
        print(f"{number}\tstate not known\trun {run}")
    return 0


def own_settings(results: Path) -> Settings:
    """Settings of results in which something is removed; another user may have planted neither them nor their tiers.

    Raises
    ------
    TierError
        If one may have.
    """
    refuse_planted_results(results)
    settings = load_settings(results)
    for tier in tiers_of(settings).values():
        tier.refuse_planted()
    return settings


def open_page(results: Path, name: str) -> int:
    """Show a page in the browser, and print where it lies; the exit code of the process.

    Parameters
    ----------
    results
        The results folder.
    name
        Which page; empty for the one that was written last.

    Raises
    ------
    SettingsError
        If there is no such page.
    PermissionError
        If the folder may not be looked into.
    """
    files = list(results.iterdir()) if results.is_dir() else []  # glob would find nothing in a folder closed to us
    pages = {file.stem: file for file in files if file.suffix == ".html" and stat.S_ISREG(file.lstat().st_mode)}
    if not pages:
        fix = "give a results folder, or have one made: snakemake all"
        raise SettingsError("has no page" if results.is_dir() else "is no folder", str(results), fix)
    if name and name not in pages:
        raise SettingsError(f"has no page {name!r}", str(results), f"it has {', '.join(sorted(pages))}")
    page = pages[name] if name else max(pages.values(), key=lambda file: file.stat().st_mtime)
    print(page)
    if {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():  # else a browser for terminals would be found, if any
        webbrowser.open(page.as_uri())
    return 0


def show_images(results: Path, unused_days: float | None) -> int:
    """Print the container images in the store, or remove those that were not used for so long; the exit code.

    Those that a results folder uses stay in any case.
    """
    places = Places.from_settings(load_settings(results) if unused_days is None else own_settings(results))
    stored = list(stored_images(places.image_store, places.images))
    if unused_days is None:
        print(f"{len(stored)} kept in {places.image_store}:")
        for image in stored:
            print(f"{image.name}\t{size(image.size_bytes)}\tused {utc(image.used_s)}\tsha256:{image.sha256[:12]}")
        return 0
    if not unused_days * DAY_S >= 0:
        raise SettingsError("is no number of days", f"--remove-unused {unused_days}", "give 30, for example")
    users = {results, *users_of(places.image_store), *users_of(places.images)}
    in_use = set[str]().union(*map(digests_used, users))
    for image, files in remove_unused(stored, unused_days, in_use):
        what = f"{image.name} ({size(image.size_bytes)}, used {utc(image.used_s)})"
        print(f"removed {what}: {', '.join(map(str, files))}", flush=True)
    return 0


def show_description(record: Path, phase: str | None, output: Path | None) -> int:
    """Print a description of a measured run (:mod:`neurotier.analysis.rehearsal`), or write it; the exit code.

    Raises
    ------
    TierError
        If it cannot be written.
    """
    text = describe(record, phase)
    if output is None:
        print(text, end="")
        return 0
    try:
        write_text(output, text)
    except OSError as error:
        raise TierError(f"cannot be written: {error.strerror}", f"--output {output}") from None
    return 0


LINKED = "workflow"
"""Rules and scripts are those of the library, always: a copy would stay behind when the package is renewed."""

COPIED = ("config", "profiles", "containers")
"""What users change."""


def lay_out(folder: Path) -> list[str]:
    """Lay out a folder with the workflow, its configuration and profiles; what to do next, in lines.

    In a folder that was laid out before, the workflow is that of this version afterwards, what is missing is copied,
    and what is there stays as it is.

    Raises
    ------
    SettingsError
        If something else is there by the name of the workflow.
    TierError
        If the folder cannot be written, or another user may have planted what leads there.
    """
    refuse_planted(folder, "folder to work in", "choose another folder")
    link = folder / LINKED
    added = []
    if (folder / "dataset_description.json").exists():
        raise SettingsError("is a BIDS dataset, which is only read", str(folder), "choose another folder")
    if os.path.lexists(link) and not link.is_symlink():
        fix = "choose another folder; in a checkout there is nothing to lay out"
        raise SettingsError("is there already, and is no link to an installed workflow", str(link), fix)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            if not os.path.lexists(folder / name):
                with made_whole(folder / name) as partial:
                    shutil.copytree(ROOT / name, partial, ignore=shutil.ignore_patterns("__pycache__"))
                added.append(name)
        if not link.is_symlink() or link.resolve() != (ROOT / LINKED).resolve():
            with made_whole(link) as partial:
                partial.symlink_to(ROOT / LINKED)
            added.append(LINKED)
    except OSError as error:
        is_copy = isinstance(error, shutil.Error)  # of copytree: what was copied, where to, and why not, of each file
        why = error.args[0][0][2] if is_copy else error.strerror
        raise TierError(f"cannot be written: {why}", str(error.filename or folder)) from None
    return [
        f"{folder}: {', '.join(added)}" if added else f"{folder}: everything is there",
        f"Begin with: cd {folder} && snakemake --workflow-profile profiles/local --cores 2",
    ]
