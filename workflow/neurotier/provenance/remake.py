"""``neurotier remake``: make derivatives again in a clone of their dataset; the command of its run records.

It needs the clone alone: ``code/neurotier/`` says how they were made, and the raw images are fetched through the
sub-dataset that is registered as their source. ``datalad rerun`` runs it and saves what it changes, which is nothing if
the same bytes come out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neurotier import __version__
from neurotier.analysis.activity import How
from neurotier.analysis.app import root_files
from neurotier.analysis.participant import Job, analyze, run_phase, staged_limit_bytes
from neurotier.analysis.staging import publish, stage_in
from neurotier.analysis.tools import make_tool
from neurotier.containers.caches import PlacedCache
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import ContainerError, InputError, SourceError
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.quantities import first_of
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import find_mount, tiers_of
from neurotier.core.work_folders import IN, OUT, work_folder
from neurotier.dataset.attempts import first_message
from neurotier.dataset.bids import Image, read_image
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.dataset.health import ask_git
from neurotier.dataset.index import app_files
from neurotier.dataset.selection import chosen as chosen_of
from neurotier.provenance.description import HOW, owner_of, read_how
from neurotier.provenance.remake_group import copy_entry, group_again, inputs_of_group
from neurotier.provenance.repository import run_git
from neurotier.provenance.source import RAW
from neurotier.run import caches
from neurotier.run.jobs import image_store

ONLY = "NEUROTIER_PARTICIPANTS"
"""Environment variable: of the participants of a command, those to make again."""

IMAGE = "NEUROTIER_IMAGE"
"""Environment variable: a file with the container image, where the recorded reference does not give it any more."""


def remake(how_file: Path, inputs: Sequence[Path], work: Path | None = None) -> int:
    """Make derivatives again in the dataset that says how they were made; the exit code of the process.

    Parameters
    ----------
    how_file
        Below ``code/neurotier`` of the dataset.
    inputs
        The raw images, or for an app the folders of participants, below the dataset's ``sourcedata/raw``.
    work
        Folder for intermediates; ``None`` takes that of temporary files.

    Raises
    ------
    NeurotierError
        If an input cannot be had, or its analysis fails. The derivatives of others are there then.
    """
    dataset = how_file.absolute().parents[len(HOW.parts)]
    if how_file.absolute().parent != dataset / HOW:
        raise InputError(f"is not below {HOW}/ of a dataset of derivatives", where=str(how_file))
    how = read_how(dataset, how_file.stem)
    if how.get("group"):
        fetch(dataset, [RAW], get_data=False)
        fetch(dataset, inputs_of_group(dataset, how))
    else:
        everyone = raw_paths(dataset, inputs)
        paths = wanted(everyone, os.environ.get(ONLY, ""))
        participants = dict.fromkeys(map(owner_of, paths))
        put_back(dataset, set(map(owner_of, everyone)) - participants.keys())
        fetch(dataset, [f"{RAW}/{path}" for path in paths])
    if how.get("app"):
        fetch(dataset, [f"{RAW}/{path}" for path in root_files(dataset / RAW)])
    with tempfile.TemporaryDirectory(prefix="neurotier-", dir=work) as scratch:
        settings, log = settings_of(how, Path(scratch)), Path(scratch, "log")
        places = Places.from_settings(settings)
        log.touch()
        image = placed(how, settings, places)
        version = how["version"] if image else make_tool(settings.tool).version()  # an image is known by its digest
        for name, recorded, here in (
            ("neurotier", how["neurotier"], __version__),
            (how["name"], how["version"], version),
        ):
            if recorded != here:
                say(f"neurotier: {name} is {here} here, and was {recorded}: other bytes may come out")
        if how.get("group"):
            if image is None:
                raise InputError("names no container image, and the group level needs it", where=str(how_file))
            with work_folder(places.work_of("group"), identity="") as folder:
                group_again(dataset, how, settings, folder, log, image)
            return 0
        for participant in participants:
            own = [path for path in paths if owner_of(path) == participant]
            images = images_of(dataset / RAW, participant, own, settings, how.get("chosen", {}))
            job = Job(participant, "", images, dataset / RAW, settings, version, log, image, activity=how_file.stem)
            with work_folder(places.work_of(participant), identity="") as folder:
                analyze_again(job, folder, dataset)
    return 0


def raw_paths(dataset: Path, inputs: Sequence[Path]) -> list[str]:
    """Inputs as paths below the raw dataset.

    Raises
    ------
    InputError
        If one is not below it.
    """
    raw, paths = dataset / RAW, []
    for path in inputs:
        whole = Path(os.path.abspath(path))  # not resolved: images are links into the annex
        if not whole.is_relative_to(raw):
            raise InputError(f"is not below {raw}", where=str(path))
        below = whole.relative_to(raw).as_posix()
        if not below.startswith("sub-"):
            raise InputError("is not a participant's", where=str(path))
        paths.append(below)
    return paths


def put_back(dataset: Path, participants: Iterable[str]) -> None:
    """Put back what is missing of participants who are not made again.

    ``datalad rerun`` removes all outputs of its command whose contents are not here, and would save that they are gone.
    """
    for participant in participants:
        deleted = (ask_git(dataset, "ls-files", "-z", "--deleted", "--", f"{participant}*") or "").split("\0")
        if own := [path for path in deleted if owner_of(path) == participant]:
            run_git(dataset, "checkout", "--quiet", "HEAD", "--", *own)


def wanted(paths: Iterable[str], only: str) -> list[str]:
    """Those paths that belong to participants who are asked for; all if nobody is.

    >>> wanted(["sub-01/anat/a.nii", "sub-02/anat/b.nii"], "sub-02")
    ['sub-02/anat/b.nii']
    """
    paths, names = list(paths), only.replace(",", " ").split()
    chosen = [path for path in paths if not names or owner_of(path) in names]
    if not chosen:
        known = first_of(list(dict.fromkeys(map(owner_of, paths))))
        raise InputError("names nobody of this command", where=f"{ONLY}={only!r}", fix=f"it is about {known}")
    return chosen


def fetch(dataset: Path, paths: Sequence[str], get_data: bool = True) -> None:
    """Fetch what is not here yet; ``datalad rerun`` has done so before.

    Parameters
    ----------
    dataset
        The dataset of derivatives.
    paths
        Paths below it, also in its source.
    get_data
        Whether their contents are wanted, or only the dataset in which they are.

    Raises
    ------
    SourceError
        If it cannot be had.
    """
    prepare_environment()  # which DataLad reads on import
    from datalad.api import get
    from datalad.support.exceptions import IncompleteResultsError

    try:
        whole = [str(dataset / path) for path in paths]
        get(path=whole, dataset=str(dataset), get_data=get_data, result_renderer="disabled")
    except IncompleteResultsError as error:
        raise SourceError(f"could not be fetched: {first_message(error)}", where=str(dataset / paths[0])) from None


def settings_of(how: How, folder: Path) -> Settings:
    """Settings that make derivatives as they were made, with a folder as the only tier."""
    container = how.get("container")
    sections: dict[str, Any] = {
        "tiers": {"here": {"path": str(folder), "kind": find_mount(folder).kind}},
        "placement": dict.fromkeys(ROLES, "here"),
        "results_dataset": bool(how.get("sidecars_refer")),
    }
    if container:
        sections["containers"] = {name: container[name] for name in ("network", "environment", "binds")}
    if how.get("app"):
        sections["app"] = {**how["options"], "image": container["image"] if container else None, "name": how["name"]}
        if how["options"].get("filter_file"):
            sections["app"]["filter_file"] = str(folder / "filter.json")
            if "filter" not in how:
                raise InputError("was gone when derivatives were saved", where=str(how["options"]["filter_file"]))
            (folder / "filter.json").write_text(how["filter"])
    else:
        image = {"image": container["image"]} if container else {}
        sections["tool"] = {"name": how["name"], how["name"]: {**how["options"], **image}}
    return Settings.from_config(sections, in_containers=container is not None)


def say(line: str) -> None:
    """Tell the user."""
    print(line, file=sys.stderr)


def placed(how: How, settings: Settings, places: Places) -> PlacedImage | None:
    """The container image by which derivatives were made; ``None`` on the host.

    Raises
    ------
    ContainerError
        If the reference gives another image now.
    """
    container = how.get("container")
    if container is None:
        return None
    log = places.results.with_name("image.log")
    reference = os.environ.get(IMAGE) or container["image"]
    store = image_store(settings, places, log, say)
    image = store.obtain(reference, where="the recorded image")
    if f"sha256:{image.sha256}" != container["digest"]:
        raise ContainerError(
            f"has the digest sha256:{image.sha256}, and {container['digest']} was recorded",
            where=reference,
            fix=f"name a file with that image in the environment variable {IMAGE}",
        )
    caches = placed_caches(settings, places, how.get("caches", {})) if how.get("app") else ()
    return PlacedImage(store.engine, store.place(image), image.cache(store.kept), image.sha256, caches)


def placed_caches(settings: Settings, places: Places, recorded: Mapping[str, str]) -> tuple[PlacedCache, ...]:
    """The folders that an app reads, from where they were.

    Raises
    ------
    InputError
        If one has other contents now.
    """
    found = caches.obtain_caches(settings, places, say, placing=True)
    write_json(places.index / "caches.json", found)
    for name, cache in found.items():
        if recorded.get(name, "") != f"sha256:{cache['sha256']}":
            source = settings.app.caches[name]["source"]
            raise InputError(f"has other contents than when {recorded.get(name)} was recorded", where=source)
    return caches.placed_caches(settings, places, say)


def images_of(
    raw: Path, participant: str, paths: Sequence[str], settings: Settings, chosen: Mapping[str, Any]
) -> list[Image]:
    """The images of a participant; for an app, the files that it was given of the chosen sessions and runs."""
    if not settings.app.image:
        return [read_image(path, "") for path in paths]
    files = [file for file in app_files(raw, "", settings.app.suffixes)[0] if file.participant == participant]
    return chosen_of(files, chosen.get("sessions", []), chosen.get("runs", []), of_none=True)


def analyze_again(job: Job, folder: Path, dataset: Path) -> None:
    """Analyse a participant in a work folder, and put what comes out in the place of its derivatives.

    Raises
    ------
    NeurotierError
        If the analysis fails; nothing is replaced then.
    """
    participant = job.participant
    limit_bytes = staged_limit_bytes(job.images, tiers_of(job.settings)["work"])
    stage_in(job.dataset, job.staged_files, folder / IN, limit_bytes)
    run_phase("compute", lambda: analyze(job, folder), [])
    for entry in sorted((folder / OUT).glob(f"{participant}*")):  # what an app writes for all is the group level's
        if owner_of(entry.name) != participant:
            continue
        if entry.is_dir() and not entry.is_symlink():
            publish(entry, dataset / entry.name)
        else:
            copy_entry(folder / OUT, dataset, entry.name)
    say(f"neurotier: {participant} is made again")
