"""``neurotier remake``: make derivatives again in a clone of their dataset; run records contain this command.

Only the clone is needed: ``code/neurotier/`` says how the derivatives were made, and the raw images are fetched through
the sub-dataset that is registered as their source. An app's group level is made again from the derivatives present.
``datalad rerun`` runs the command and saves what it changes, which is nothing if the same bytes come out.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from neurotier import __version__
from neurotier.analysis.activity import How
from neurotier.analysis.app import call_arguments, run_level
from neurotier.analysis.brains import Job, Share, files_of, root_files
from neurotier.analysis.needs import content_keys, threads_of
from neurotier.analysis.participant import analyze, run_phase, staged_limit_bytes
from neurotier.analysis.staging import publish, stage_in
from neurotier.analysis.tools import make_tool
from neurotier.containers.store import PlacedImage, examine_cache, place_cache
from neurotier.core.errors import ContainerError, InputError, SettingsError, SourceError, ToolError
from neurotier.core.files import Facts, atomic_writer, make_folders, remove_path
from neurotier.core.foreign import blaming, open_file
from neurotier.core.places import Places
from neurotier.core.private import IN, OUT, work_folder
from neurotier.core.processes import use_threads
from neurotier.core.quantities import first_of
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import tier_of, tiers_of
from neurotier.dataset.bids import Image, read_image
from neurotier.dataset.commands import TOGETHER, ask_git, datalad_errors, prepare_environment
from neurotier.dataset.index import filter_images, index_site
from neurotier.meter.folders import Removal
from neurotier.provenance.description import HOW, RAW, owner_of, read_how
from neurotier.provenance.saving import run_git
from neurotier.run.images import image_store
from neurotier.run.jobs import say

ONLY = "NEUROTIER_PARTICIPANTS"
"""Environment variable that names those of a command's participants whose derivatives are made again."""

IMAGE = "NEUROTIER_IMAGE"
"""Environment variable that names a file with the container image, if the recorded reference no longer gives it."""

CACHE = "NEUROTIER_CACHE_{}"
"""Environment variable for each cache that an app reads: its path, if it is not at the recorded one."""


def remake(how_file: Path, inputs: Sequence[Path], work: Path | None) -> int:
    """Make derivatives again in the dataset that says how they were made; returns the exit code of the process.

    Parameters
    ----------
    how_file
        Below ``code/neurotier`` of the dataset.
    inputs
        The raw images, or for an app the folders of participants, below the dataset's ``sourcedata/raw``; none for the
        group level.
    work
        Folder for intermediates; ``None`` takes that of temporary files.

    Raises
    ------
    NeurotierError
        If an input is unavailable, or its analysis fails. The derivatives of the others have been made by then.
    """
    folder = how_file.absolute().parent
    if folder.parts[-len(HOW.parts) :] != HOW.parts:
        raise InputError(f"is not below {HOW}/ of a dataset of derivatives", how_file)
    dataset = folder.parents[len(HOW.parts) - 1]
    how = read_how(dataset, how_file.stem)
    raw, group = dataset / RAW, how.get("group")
    if group:
        read, paths, names = inputs_of_group(dataset, group), [], ["the group level"]
    elif not inputs:
        raise InputError(f"takes the inputs to make derivatives of, below {raw}", how_file)
    else:
        everyone = [os.path.relpath(path, raw) for path in inputs]  # not resolved: images are links into the annex
        for given, path in zip(inputs, everyone, strict=True):
            if not owner_of(path):
                raise InputError(f"is not a participant's below {raw}", given)
        paths = requested(everyone, os.environ.get(ONLY, ""))
        names = list(dict.fromkeys(map(owner_of, paths)))
        put_back(dataset, set(map(owner_of, everyone)).difference(names))
        read = [f"{RAW}/{path}" for path in paths]
    prepare_environment()
    fetch(dataset, [RAW], get_data=False)
    fetch(dataset, [*read, *(f"{RAW}/{file}" for file in (root_files(raw) if how.get("app") else []))])
    with tempfile.TemporaryDirectory(prefix="neurotier-", dir=work) as scratch:
        settings, log = settings_of(how, Path(scratch)), Path(scratch, "log")
        places = Places.from_settings(settings)
        log.touch()
        use_threads(threads_of(settings))
        image, tool = recorded_image(how, settings, places, log), make_tool(settings.tool)
        version = how["version"] if image else tool.version()  # an image is identified by its digest
        versions = [("neurotier", how["neurotier"], __version__), (how["name"], how["version"], version)]
        versions.append((f"the {tool.content}", how.get(tool.content), content_keys(settings).get(tool.content)))
        for name, recorded, here in versions:
            if recorded != here:
                say(f"neurotier: {name} is {here} here, and was {recorded}: other bytes may come out")
        for name in names:
            with work_folder(places.work_of(name), identity="") as folder:
                if group:
                    if image is None:
                        raise InputError("names no container image, and the group level needs it", how_file)
                    arguments = call_arguments(settings.app, Share(settings.app.threads, settings.app.memory_mb))
                    fill = partial(put, dataset, paths=read)
                    (folder / OUT).mkdir()
                    fill(folder / OUT)
                    run_level(arguments, raw, folder, settings, log, image, Removal(), fill)
                    made = group["made"]
                else:
                    images = images_of(raw, name, [path for path in paths if owner_of(path) == name], settings)
                    job = Job(name, images, raw, settings, version, log, image, activity=how_file.stem)
                    limit_bytes = staged_limit_bytes(images, tiers_of(settings)["work"])
                    stage_in(raw, files_of(images, raw, settings), folder / IN, limit_bytes)
                    run_phase("compute", partial(analyze, job, folder), [])
                    # what an app writes for all participants belongs to the group level
                    made = [entry for entry in os.listdir(folder / OUT) if owner_of(entry) == name]
                put(folder / OUT, dataset, made)
            say(f"neurotier: {name} is made again")
    return 0


def inputs_of_group(dataset: Path, group: Facts) -> list[str]:
    """The files and folders that the group level was given, below the dataset of derivatives.

    Raises
    ------
    InputError
        If a participant has no derivatives here any more.
    """
    found = list(group["shared"])
    for name in group["participants"]:
        entries = [entry for entry in os.listdir(dataset) if owner_of(entry) == name]
        if not entries:
            raise InputError("has no derivatives here, and the group level needs everyone's", dataset / name)
        found += entries
    return sorted(found)


def put(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Copy files, links and folders to the same paths below another folder, replacing what is there.

    Raises
    ------
    ToolError
        If one is missing that existed before; then nothing is replaced.
    """
    if lost := next((path for path in paths if not os.path.lexists(source / path)), None):
        raise ToolError("was made before, and is not now", lost)
    for path in paths:
        made, final = source / path, target / path
        make_folders(final.parent)
        if made.is_symlink():
            remove_path(final)
            final.symlink_to(os.readlink(made))
        elif made.is_dir():
            publish(made, final)
        else:
            with blaming(path, ToolError), open_file(source, path) as opened, atomic_writer(final) as file:
                shutil.copyfileobj(opened, file)


def put_back(dataset: Path, participants: Iterable[str]) -> None:
    """Put back missing derivatives of participants that are not made again.

    ``datalad rerun`` removes all outputs of its command whose contents are not present, and would save their removal.
    """
    for participant in participants:
        deleted = (ask_git(dataset, "ls-files", "-z", "--deleted", "--", f"{participant}*") or "").split("\0")
        own = [path for path in deleted if owner_of(path) == participant]
        for first in range(0, len(own), TOGETHER):
            run_git(dataset, "checkout", "--quiet", "HEAD", "--", *own[first : first + TOGETHER])


def requested(paths: Sequence[str], only: str) -> list[str]:
    """The paths that belong to requested participants; all if none were requested.

    >>> requested(["sub-01/anat/a.nii", "sub-02/anat/b.nii"], "sub-02")
    ['sub-02/anat/b.nii']
    """
    names = only.replace(",", " ").split()
    asked = [path for path in paths if not names or owner_of(path) in names]
    if not asked:
        known = first_of(list(dict.fromkeys(map(owner_of, paths))))
        raise InputError("names no participant of this command", f"{ONLY}={only!r}", f"it is about {known}")
    return asked


def fetch(dataset: Path, paths: Sequence[str], get_data: bool = True) -> None:
    """Fetch what is not present yet; ``datalad rerun`` has already done so.

    Parameters
    ----------
    dataset
        The dataset of derivatives.
    paths
        Paths below it, also in its source.
    get_data
        Whether to get their contents, or only the dataset that holds them.

    Raises
    ------
    SourceError
        If it is not available.
    """
    from datalad.api import get

    with datalad_errors("could not be fetched", str(dataset / paths[0])):
        whole = [str(dataset / path) for path in paths]
        get(path=whole, dataset=str(dataset), get_data=get_data, result_renderer="disabled")


def settings_of(how: How, folder: Path) -> Settings:
    """Settings that make derivatives as they were made before, with a folder as the only tier."""
    container, options = how.get("container", {}), dict(how["options"])
    sections = {
        "dataset": how.get("chosen", {}),
        "tiers": {"here": tier_of(folder)},
        "placement": dict.fromkeys(ROLES, "here"),
        "results_dataset": bool(how.get("sidecars_refer")),
        "containers": {name: container[name] for name in ("network", "environment", "binds") if container},
    }
    if how.get("app"):
        if named := options.get("filter_file"):
            if "filter" not in how:
                raise InputError("was gone when derivatives were saved", named)
            options["filter_file"] = str(folder / "filter.json")
            (folder / "filter.json").write_text(how["filter"])
        sections["app"] = options | {"image": container["image"], "name": how["name"]}
    else:
        image = {"image": container["image"]} if container else {}
        sections["tool"] = {"name": how["name"], how["name"]: options | image}
    return Settings.from_config(sections, in_containers=bool(container))


def recorded_image(how: How, settings: Settings, places: Places, log: Path) -> PlacedImage | None:
    """The container image with which derivatives were made, and the caches that an app reads; ``None`` on the host.

    Raises
    ------
    ContainerError
        If the reference gives another image now.
    InputError
        If one of these caches has other contents now.
    """
    container = how.get("container")
    if not container:
        return None
    reference = os.environ.get(IMAGE) or container["image"]
    store = image_store(settings, places, log, say)
    fix = f"name a file with that image in the environment variable {IMAGE}"
    try:
        image = store.obtain(reference, where="the recorded image")
    except SettingsError as error:
        raise ContainerError(error.what, f"the recorded image {reference}", fix) from None
    if f"sha256:{image.sha256}" != container["digest"]:
        raise ContainerError(
            f"has the digest sha256:{image.sha256}, and {container['digest']} was recorded",
            reference,
            fix,
        )
    caches = {}
    for name, each in settings.app.caches.items():
        named, recorded = CACHE.format(name.replace("-", "_")), how.get("caches", {}).get(name)
        source = os.environ.get(named) or each["source"]
        fix = f"name a folder with the recorded contents in the environment variable {named}"
        try:
            cache = examine_cache(name, source)
        except SourceError as error:
            raise SourceError(error.what, f"cache {name}: {source}", fix) from None
        if recorded != f"sha256:{cache.sha256}":
            raise InputError(f"has other contents than when {recorded} was recorded", source, fix)
        caches[place_cache(store, cache)] = cache
    return PlacedImage(store.engine, store.file(image), store.cache(image), image.sha256, caches)


def images_of(raw: Path, participant: str, paths: Sequence[str], settings: Settings) -> list[Image]:
    """The images of a participant; for an app, the files that it was given of the chosen sessions and runs."""
    if not settings.is_app:
        return [read_image(path, "") for path in paths]
    files = [file for file in index_site(raw, "", settings.app.suffixes)[0] if file.participant == participant]
    return filter_images(files, settings.dataset, of_none=True)
