"""Commands that work without a run: set up a folder to work in; show the pages of a results folder, its jobs on a
cluster, and the container images in its store; describe what was measured."""

from __future__ import annotations

import os
import shutil
import stat
import webbrowser
from pathlib import Path

from neurotier.analysis.rehearsal.description import describe
from neurotier.containers.store import DAY_S, remove_unused, stored_images, users_of
from neurotier.core.errors import SettingsError, TierError
from neurotier.core.files import atomic_path
from neurotier.core.installed import ROOT
from neurotier.core.places import Places
from neurotier.core.private import refuse_planted
from neurotier.core.quantities import size, utc
from neurotier.core.settings import Settings
from neurotier.core.tiers import tiers_of
from neurotier.run.adoption import end_jobs, latest_run, leftover_jobs, prefix_of
from neurotier.run.head import acquire, refuse_planted_results
from neurotier.run.images import digests_used
from neurotier.run.jobs import forget_stopped, load_settings


def show_cluster_jobs(results: Path, end_them: bool) -> int:
    """Print the cluster jobs of runs that have not ended, each with its state and, if it waits, Slurm's reason. With
    ``end_them``, end them first. Returns the exit code of the process.

    Raises
    ------
    BusyError
        If they are to be ended while their run is still alive.
    """
    places = Places.from_settings(own_settings(results) if end_them else load_settings(results))
    if end_them:
        acquire(places)
        end_jobs(*leftover_jobs(places), "", lambda line: print(line, flush=True))
        forget_stopped(places, latest_run(places))
    jobs, others = leftover_jobs(places)
    for number, job in jobs.items():
        print(f"{number}\t{job.description}\t{job.name.removeprefix(prefix_of(places))}")
    for number, run in others.items():
        print(f"{number}\tstate not known\trun {run}")
    return 0


def own_settings(results: Path) -> Settings:
    """Settings of a results folder in which something is to be removed, unless another user may have planted it or a
    tier.

    Raises
    ------
    TierError
        If another user may have planted the results folder or a tier.
    """
    refuse_planted_results(results)
    settings = load_settings(results)
    for tier in tiers_of(settings).values():
        tier.refuse_planted()
    return settings


def open_page(results: Path, name: str) -> int:
    """Show a page in the browser, and print its path; returns the exit code of the process.

    Parameters
    ----------
    results
        The results folder.
    name
        Name of the page; empty for the latest one.

    Raises
    ------
    SettingsError
        If there is no such page.
    PermissionError
        If the folder may not be read.
    """
    files = results.iterdir() if results.is_dir() else []  # glob would hide that a folder cannot be read
    pages = {file.stem: file for file in files if file.suffix == ".html" and stat.S_ISREG(file.lstat().st_mode)}
    if not pages:
        raise SettingsError(
            "has no page" if results.is_dir() else "is not a folder",
            results,
            "give a results folder, or have one made: snakemake all",
        )
    if name and name not in pages:
        raise SettingsError(f"has no page {name!r}", results, f"it has {', '.join(sorted(pages))}")
    page = pages[name] if name else max(pages.values(), key=lambda file: file.stat().st_mtime)
    print(page)
    if {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():  # else a text browser might be started
        webbrowser.open(page.as_uri())
    return 0


def show_images(results: Path, unused_days: float | None) -> int:
    """Print the container images in the store or, if ``unused_days`` is given, remove those unused for so long; returns
    the exit code.

    Images that a results folder uses are never removed.
    """
    places = Places.from_settings(load_settings(results) if unused_days is None else own_settings(results))
    stored = list(stored_images(places.image_store, places.images))
    if unused_days is None:
        print(f"{len(stored)} kept in {places.image_store}:")
        for image in stored:
            print(f"{image.facts.stem}\t{size(image.size_bytes)}\tused {utc(image.used_s)}\tsha256:{image.sha256[:12]}")
        return 0
    if not unused_days * DAY_S >= 0:
        raise SettingsError("is not a number of days", f"--remove-unused {unused_days}", "give 30, for example")
    users = {results, *users_of(places.image_store), *users_of(places.images)}
    for image, files in remove_unused(stored, unused_days, set[str]().union(*map(digests_used, users))):
        what = f"{image.facts.stem} ({size(image.size_bytes)}, used {utc(image.used_s)})"
        print(f"removed {what}: {', '.join(map(str, files))}", flush=True)
    return 0


def show_description(record: Path, phase: str | None, output: Path | None) -> int:
    """Print or write a description of a measured run (:mod:`neurotier.analysis.rehearsal`); returns the exit code."""
    text = describe(record, phase)
    if output is None:
        print(text, end="")
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)  # not replaced atomically, since the user may name a link or a device
    return 0


LINKED = "workflow"
"""Linked, since rules and scripts must match the library: a copy would be outdated once the package is updated."""

COPIED = ("config", "profiles", "containers")
"""Copied, since users change these."""


def set_up_folder(folder: Path) -> list[str]:
    """Set up a folder with the workflow, its configuration and profiles; returns lines that say what to do next.

    If the folder has been set up before, the workflow is switched to this version and missing files are copied;
    existing files stay as they are.

    Raises
    ------
    SettingsError
        If the folder is a BIDS dataset, or contains something else under the name of the workflow.
    TierError
        If the folder cannot be written, or another user may have planted a part of its path.
    """
    refuse_planted(folder, "folder to work in", "choose another folder")
    link = folder / LINKED
    added = []
    if (folder / "dataset_description.json").exists():
        raise SettingsError("is a BIDS dataset, which is only read", folder, "choose another folder")
    if link.exists() and not link.is_symlink():
        raise SettingsError(
            "is there already, and is not a link to an installed workflow",
            link,
            "choose another folder; a checkout needs no set-up",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            if not os.path.lexists(folder / name):
                with atomic_path(folder / name) as partial:
                    shutil.copytree(ROOT / name, partial, ignore=shutil.ignore_patterns("__pycache__"))
                    for path in (partial, *partial.rglob("*")):
                        path.chmod(path.stat().st_mode | 0o200)  # files of a shared installation may be read-only
                added.append(name)
        if link.resolve() != (ROOT / LINKED).resolve():
            with atomic_path(link) as partial:
                partial.symlink_to(ROOT / LINKED)
            added.append(LINKED)
    except OSError as error:
        raise TierError(  # copytree gives source, target and reason for each file
            f"cannot be written: {error.strerror or error.args[0][0][2]}", error.filename or folder
        ) from None
    return [
        f"{folder}: {', '.join(added) or 'everything is there'}",
        f"Begin with: cd {folder} && snakemake --workflow-profile profiles/local --cores 2",
    ]
