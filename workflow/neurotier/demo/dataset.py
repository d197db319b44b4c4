"""The demonstration dataset: a DataLad superdataset of two sites shaped like CoRR, small enough to make on the spot.

As in CoRR, every site is a BIDS dataset of its own, participants have 7-digit labels and differ in their numbers
of sessions and runs, and one has no T1w image. Images are git-annex content; text is in git.
"""

from __future__ import annotations

import itertools
import logging
import zlib
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError

from neurotier.core.errors import InputError, TierError
from neurotier.core.files import made_whole, write_json, write_text
from neurotier.core.settings import DemoSettings, Say
from neurotier.dataset.commands import naming_commands, prepare_environment
from neurotier.demo.heads import DATA, model_head, varied_head

DEBIAN_HEAD = Path("/usr/share/mricron/templates/ch2.nii.gz")
"""A real whole head (Colin27, 1 mm), where Debian's package mricron-data is installed."""

SIMULATED = "simulated"
"""Value of ``demo.head`` that asks for the simulated head, whatever is installed."""

FIX = "give a NIfTI file of a whole head"

BOLD_SHAPE = (8, 8, 6, 4)
BOLD_VOXEL_MM = 4.0

SITES: dict[str, dict[str, tuple[int, str, list[int]]]] = DATA["sites"]
"""Participants of each site by label: age in years, sex, and the number of T1w runs in each session."""


def make_demo_dataset(folder: Path, settings: DemoSettings, say: Say = print) -> None:
    """Make the dataset; it gets its name when it is complete.

    Parameters
    ----------
    folder
        Its path, which must not exist or be an empty folder. Remains of an interrupted attempt next to it are removed,
        so only one process may make the same folder at a time.
    settings
        ``head`` is a NIfTI file of a whole head to vary; ``None`` takes Debian's ch2 head where installed, else
        the simulated head; the word ``simulated`` takes the simulated head in any case.
    say
        Takes one line per step.

    Raises
    ------
    InputError
        If the head cannot be used.
    TierError
        If ``folder`` is taken or cannot be written.
    SourceError
        If DataLad or git-annex fails.
    """
    head, description = head_of(settings)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise TierError("the demonstration dataset needs a new folder", where=str(folder), fix="remove this one")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with made_whole(folder) as partial:
            say(f"Its heads are made from {description}.")
            write_files(partial, settings, head, description)
            prepare_environment()
            save_datasets(partial)
    except OSError as error:
        raise TierError(f"cannot make the demonstration dataset: {error}", where=str(folder)) from error


def head_of(settings: DemoSettings) -> tuple[nib.Nifti1Image, str]:
    """The head to vary, and what it is, in words.

    Raises
    ------
    InputError
        If the head that was asked for cannot be used.
    """
    if settings.head == SIMULATED or (settings.head is None and not DEBIAN_HEAD.is_file()):
        return model_head(), "a simulated head around a real brain template"
    path = Path(settings.head).expanduser() if settings.head else DEBIAN_HEAD
    if not path.is_file():
        raise InputError("no such file", where=f"config key demo.head: {path}", fix=FIX)
    return load_head(path), "the real head ch2 (Colin27)" if path == DEBIAN_HEAD else f"the real head {path.name}"


def load_head(path: Path) -> nib.Nifti1Image:
    """Read a head into memory (float32).

    Raises
    ------
    InputError
        If it is not a whole, readable 3D NIfTI image with something in it.
    """
    try:
        image = nib.load(path)
        data = np.nan_to_num(image.get_fdata(dtype=np.float32))
    except (ImageFileError, OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"cannot be read as NIfTI ({error})", where=str(path), fix=FIX) from error
    is_3d = data.ndim == 3 and min(data.shape) > 1
    if not is_3d or data.max() <= 0:
        problem = "has no positive voxel" if is_3d else f"is not a 3D image but of shape {data.shape}"
        raise InputError(problem, where=str(path), fix=FIX)
    return nib.Nifti1Image(data, image.affine)


def write_files(folder: Path, settings: DemoSettings, head: nib.Nifti1Image, origin: str) -> None:
    """Write the files of superdataset and sites, without version control; ``origin`` is what the head is, in words."""
    write_text(folder / "README.md", (DATA["readme"] + DATA["origin"]).format(origin=origin))
    seeds = itertools.count(settings.seed)
    for site, participants in SITES.items():
        write_text(folder / site / "README.md", (DATA["site_readme"] + DATA["origin"]).format(site=site, origin=origin))
        write_json(folder / site / "dataset_description.json", filled(DATA["description"], site=site, origin=origin))
        write_json(folder / site / "participants.json", DATA["columns"])
        rows = [f"sub-{label}\t{age_years}\t{sex}\n" for label, (age_years, sex, _) in participants.items()]
        write_text(folder / site / "participants.tsv", "".join(["participant_id\tage\tsex\n", *rows]))
        for label, (*_, sessions) in participants.items():
            subject, seed = f"sub-{label}", next(seeds)
            scans = [(session, run) for session, runs in enumerate(sessions, 1) for run in range(1, runs + 1)]
            for scan, (session, run) in enumerate(scans):
                stem = folder / site / subject / f"ses-{session}/anat/{subject}_ses-{session}_run-{run}_T1w"
                save(varied_head(head, seed, settings.voxel_size_mm, scan), stem, filled(DATA["t1w"], origin=origin))
            if not scans:
                stem = folder / site / subject / f"ses-1/func/{subject}_ses-1_task-rest_run-1_bold"
                save(noise_bold(seed), stem, DATA["t1w"] | DATA["bold"])


def filled(texts: dict[str, Any], **names: str) -> dict[str, Any]:
    """Some keys and values, with names filled in where the values have them in braces."""
    return {key: value.format(**names) if isinstance(value, str) else value for key, value in texts.items()}


def save(image: nib.Nifti1Image, stem: Path, sidecar: dict[str, Any]) -> None:
    """Write an image with its sidecar."""
    write_json(stem.with_suffix(".json"), sidecar)
    nib.save(image, stem.with_suffix(".nii.gz"))


def noise_bold(seed: int) -> nib.Nifti1Image:
    """A tiny 4D image of noise, which is not a T1w image."""
    values = np.random.default_rng(seed).integers(0, 1000, BOLD_SHAPE, dtype=np.int16)
    image = nib.Nifti1Image(values, np.diag([BOLD_VOXEL_MM] * 3 + [1.0]))
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = DATA["bold"]["RepetitionTime"]
    return image


def save_datasets(folder: Path) -> None:
    """Make ``folder`` a superdataset with the sites as sub-datasets, and save everything in them.

    Raises
    ------
    SourceError
        With DataLad's message.
    """
    from datalad import api  # slow, and reads the environment on import

    logging.getLogger("datalad").setLevel(logging.ERROR)
    quiet, superdataset = {"result_renderer": "disabled"}, str(folder)
    with naming_commands("could not save the demonstration dataset", superdataset):
        for name, within in {"": None, **dict.fromkeys(SITES, superdataset)}.items():
            # without a description, git-annex records the name of the temporary folder
            options = {"cfg_proc": "text2git", "force": True, "description": "demonstration", **quiet}
            api.create(path=str(folder / name), dataset=within, **options)
        api.save(dataset=superdataset, recursive=True, message="Make the demonstration dataset", **quiet)
