"""The demonstration dataset: a DataLad superdataset of two sites shaped like CoRR, small enough to make on the spot.

As in CoRR, every site is a BIDS dataset of its own, participants have 7-digit labels and differ in their numbers
of sessions and runs, and one has no T1w image. Images are git-annex content; text is in git.

Participants are made from a whole head, real or simulated: the participant's seed gives a small affine change of its
geometry, and that of the scan a bias field and Rician noise. The simulated head is skull, scalp, face and neck painted
around nilearn's packaged brain template (MNI ICBM152 2009a, T1-weighted), a real, averaged brain that comes without
skull. Everything else is drawn from the ellipsoids of ``demonstration.yaml``, in MNI millimetres (x right, y front, z
up) and in intensities relative to white matter. It is meant to look like a head to brain extraction, not to anatomists.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, from_matvec, rescale_affine, voxel_sizes
from nibabel.eulerangles import euler2mat
from nibabel.filebasedimages import ImageFileError
from nibabel.processing import resample_from_to
from nibabel.spatialimages import HeaderDataError
from numpy.polynomial.polynomial import polygrid3d
from numpy.typing import NDArray
from scipy import ndimage

from neurotier.core.configuration import read_yaml
from neurotier.core.errors import InputError, TierError
from neurotier.core.files import Record, absolute_path, atomic_path, write_json, write_text
from neurotier.core.settings import DemoSettings, Say
from neurotier.dataset.commands import datalad_errors, prepare_environment

DATA = read_yaml(Path(__file__).with_name("demonstration.yaml").read_text())
"""Participants, texts, and the parts of the head."""

FIX = "give a NIfTI file of a whole head"

BOLD_SHAPE = (8, 8, 6, 4)
BOLD_VOXEL_MM = 4.0

SITES = DATA["sites"]
"""Participants of each site by label: age in years, sex, and the number of T1w runs in each session."""


def make_demo_dataset(folder: Path, settings: DemoSettings, say: Say) -> None:
    """Make the dataset; it gets its name when it is complete.

    Parameters
    ----------
    folder
        Its path, which must not exist or be an empty folder. Remains of an interrupted attempt next to it are removed,
        so only one process may make the same folder at a time.
    settings
        ``head`` is a NIfTI file of a whole head to vary, or ``simulated``.
    say
        Prints one line per step, for the user.

    Raises
    ------
    InputError
        If the head cannot be used.
    TierError
        If ``folder`` is taken.
    SourceError
        If DataLad or git-annex fails.
    """
    head, description = head_of(settings)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TierError("the demonstration dataset needs a new folder", folder, "remove this one")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder) as partial:
        say(f"Its heads are made from {description}.")
        write_files(partial, settings, head, description)
        prepare_environment()
        save_datasets(partial)


def head_of(settings: DemoSettings) -> tuple[nib.Nifti1Image, str]:
    """The head to vary, and what it is, in words.

    Raises
    ------
    InputError
        If the head that was asked for cannot be used.
    """
    if settings.head == "simulated":
        return model_head(), "a simulated head around a real brain template"
    path = absolute_path(settings.head)
    if not path.is_file():
        raise InputError("no such file", f"config key demo.head: {path}", FIX)
    return load_head(path), f"the real head {path.name}"


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
    except (ImageFileError, HeaderDataError, OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"cannot be read as NIfTI ({error})", path, FIX) from error
    is_3d = data.ndim == 3 and min(data.shape) > 1
    if not is_3d or data.max() <= 0:
        raise InputError(
            "has no positive voxel" if is_3d else f"is not a 3D image but of shape {data.shape}", path, FIX
        )
    return nib.Nifti1Image(data, image.affine)


def write_files(folder: Path, settings: DemoSettings, head: nib.Nifti1Image, origin: str) -> None:
    """Write the files of superdataset and sites, without version control; ``origin`` is what the head is, in words."""
    write_text(folder / "README.md", (DATA["readme"] + DATA["origin"]).format(origin=origin))
    seeds = itertools.count(settings.seed)
    for site, participants in SITES.items():
        root = folder / site
        write_text(root / "README.md", (DATA["site_readme"] + DATA["origin"]).format(site=site, origin=origin))
        write_json(root / "dataset_description.json", filled(DATA["description"], site=site, origin=origin))
        write_json(root / "participants.json", DATA["columns"])
        rows = [f"sub-{label}\t{age_years}\t{sex}\n" for label, (age_years, sex, _) in participants.items()]
        write_text(root / "participants.tsv", "".join(["participant_id\tage\tsex\n", *rows]))
        for label, (*_, sessions) in participants.items():
            subject, seed = f"sub-{label}", next(seeds)
            scans = [(session, run) for session, runs in enumerate(sessions, 1) for run in range(1, runs + 1)]
            for scan, (session, run) in enumerate(scans):
                stem = root / subject / f"ses-{session}/anat/{subject}_ses-{session}_run-{run}_T1w"
                save(varied_head(head, seed, settings.voxel_size_mm, scan), stem, filled(DATA["t1w"], origin=origin))
            if not scans:
                stem = root / subject / f"ses-1/func/{subject}_ses-1_task-rest_run-1_bold"
                save(noise_bold(seed), stem, DATA["t1w"] | DATA["bold"])


def filled(texts: Record, **names: str) -> Record:
    """A record with ``names`` filled in where its texts have them in braces."""
    return {key: value.format(**names) if isinstance(value, str) else value for key, value in texts.items()}


def save(image: nib.Nifti1Image, stem: Path, sidecar: Record) -> None:
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

    quiet, superdataset = {"result_renderer": "disabled"}, str(folder)
    with datalad_errors("could not save the demonstration dataset", superdataset):
        for name, within in {"": None, **dict.fromkeys(SITES, superdataset)}.items():
            api.create(
                path=str(folder / name),
                dataset=within,
                cfg_proc="text2git",
                force=True,
                description="demonstration",  # otherwise git-annex records the name of the temporary folder
                **quiet,
            )
        api.save(dataset=superdataset, recursive=True, message="Make the demonstration dataset", **quiet)


Field = NDArray[np.float32]
Mask = NDArray[np.bool_]

# Heads.

VOXEL_MM = 1.5
LOWER_MM, UPPER_MM = np.array([-96.0, -129.0, -117.0]), np.array([96.0, 117.0, 102.0])
"""Field of view: the whole scalp, the face and a piece of neck."""

FLUID, BONE, MARROW, MUSCLE, FAT, SKIN, AIR = 0.22, 0.06, 0.3, 0.4, 1.15, 0.6, 0.0
"""T1-weighted contrast: fat brightest, then white matter (1), skin, muscle, marrow, fluid; bone and air dark."""

ADULT_SCALE = 0.9
"""The brain template is larger than most brains of adults, by so much along each axis."""

SUBARACHNOID_MM, SKULL_MM, SCALP_MM = 1.5, 7.0, 6.0
"""Thickness of the layers around the brain's hull."""

MARGIN_MM = 10.0
"""By how much the field of view grows on every side, so that the head can move and no brain lies at its edge."""

NOISE = 0.02
"""Standard deviation of the noise in each of the two channels, as part of the bright intensity."""

BRIGHT = 1000
"""Stored value of the bright intensity (99th percentile of the head)."""


@cache
def model_head() -> nib.Nifti1Image:
    """The head: float32, white matter near 1, 1.35 mm isotropic; it is made in MNI space, with voxels of 1.5 mm."""
    from nilearn.datasets import load_mni152_brain_mask, load_mni152_template  # takes seconds to import

    shape = tuple(np.ceil((UPPER_MM - LOWER_MM) / VOXEL_MM).astype(int))
    affine = from_matvec(np.diag([VOXEL_MM] * 3), LOWER_MM)
    brain, mask = (
        resample_from_to(load(resolution=1), (shape, affine), order=1).get_fdata(dtype=np.float32)
        for load in (load_mni152_template, load_mni152_brain_mask)
    )
    to_dura = distance_to_hull(mask > 0.5) - SUBARACHNOID_MM
    lines = (
        lower + VOXEL_MM * np.arange(count, dtype=np.float32) for lower, count in zip(LOWER_MM, shape, strict=True)
    )
    axes = np.meshgrid(*lines, indexing="ij", sparse=True)

    def inside(ellipsoid: Sequence[Sequence[float]]) -> Mask:  # centre and radii, mm
        return np.asarray(sum(((axis - c) / r) ** 2 for axis, c, r in zip(axes, *ellipsoid, strict=True)) < 1)

    region = np.logical_or.reduce([to_dura < SKULL_MM + SCALP_MM, *map(inside, DATA["soft"])])
    depth = ndimage.distance_transform_edt(region, sampling=VOXEL_MM)
    head = np.select([~region, depth < 1.8, depth < 6.0], [AIR, SKIN, FAT], MUSCLE).astype(np.float32)
    for ellipsoid, intensity in DATA["face"]:
        head[inside(ellipsoid)] = intensity
    # Fluid inside the dura; around it two tables of bone with marrow between them.
    head[to_dura < SKULL_MM] = BONE
    head[(axes[2] > -30) & (np.abs(to_dura - 0.5 * SKULL_MM) < 1.0)] = MARROW
    head[to_dura < 0] = FLUID
    # The template fades out at its edge; the lesser part of an edge voxel is fluid.
    head = np.where(mask > 0.05, np.maximum(brain / np.percentile(brain[mask > 0.5], 95), FLUID), head)
    affine[:3] *= ADULT_SCALE
    # Under a voxel of blur: no scanner draws sharp edges.
    return nib.Nifti1Image(ndimage.gaussian_filter(head, 0.5), affine)


def distance_to_hull(inside: Mask) -> Field:
    """Signed distance, mm, to the brain's hull, that is the brain with fissures up to 18 mm wide closed.

    Negative inside. Computed on every second voxel and interpolated, since the hull is smooth.
    """

    def distance(region: Mask) -> Field:
        return np.asarray(ndimage.distance_transform_edt(region, sampling=2 * VOXEL_MM), np.float32)

    hull = distance(distance(~inside[::2, ::2, ::2]) < 9.0) > 9.0
    smooth = ndimage.gaussian_filter(distance(~hull) - distance(hull), 2.0, mode="nearest")
    fine: Field = ndimage.affine_transform(smooth, [0.5] * 3, output_shape=inside.shape, order=1, mode="nearest")
    return fine


def varied_head(head: nib.Nifti1Image, seed: int, voxel_size_mm: float, scan: int) -> nib.Nifti1Image:
    """A head as another participant's: resampled, moved and scaled a little, with own bias field and noise.

    Parameters
    ----------
    head
        A whole head, 3D, with any voxels; its orientation is kept, its field of view gains :data:`MARGIN_MM`.
    seed
        Seed of the participant: geometry.
    voxel_size_mm
        Edge of the isotropic voxels, mm.
    scan
        Number of the scan of this participant: bias field and noise; geometry stays.

    Returns
    -------
    nibabel.Nifti1Image
        int16, isotropic, qform and sform set, mm; the same for the same arguments.
    """
    image = moved_image(head, seed, voxel_size_mm)
    signal = np.clip(image.dataobj, 0, None)
    inside = signal > 0.1 * signal.max()
    signal /= np.percentile(signal[inside], 99) if inside.any() else 1.0

    random = np.random.default_rng([seed, 1, scan])
    x, y, z = (np.linspace(-1, 1, count) for count in signal.shape)
    signal *= np.exp(polygrid3d(x, y, z, random.uniform(-0.03, 0.03, (3, 3, 3))))  # a smooth field around 1
    real, imaginary = NOISE * random.standard_normal((2, *signal.shape), np.float32)
    values = np.clip(np.round(BRIGHT * np.hypot(signal + real, imaginary)), 0, np.iinfo(np.int16).max)

    varied = nib.Nifti1Image(values.astype(np.int16), image.affine)
    varied.header.set_xyzt_units("mm")
    varied.set_qform(image.affine, code="scanner")
    return varied


def moved_image(image: nib.Nifti1Image, seed: int, voxel_size_mm: float) -> nib.Nifti1Image:
    """An image in isotropic voxels, changed about its centre as a participant's seed says; float32.

    Scale +-6 %, rotation +-5 degrees, shift +-4 mm, slight shear. What the field of view cuts off (the neck) is
    continued from its edge, so that no air opens there.
    """
    random = np.random.default_rng([seed, 0])
    change = euler2mat(*np.radians(random.uniform(-5, 5, 3))) @ np.diag(random.uniform(0.94, 1.06, 3))
    change += np.triu(random.uniform(-0.02, 0.02, (3, 3)), 1)
    centre_mm = apply_affine(image.affine, (np.array(image.shape) - 1) / 2)
    about_centre = from_matvec(change, centre_mm - change @ centre_mm + random.uniform(-4, 4, 3))
    changed = nib.Nifti1Image(image.get_fdata(dtype=np.float32), about_centre @ image.affine)
    edges_mm = np.array(image.shape) * voxel_sizes(image.affine) + 2 * MARGIN_MM
    shape = tuple(np.maximum(1, np.round(edges_mm / voxel_size_mm)).astype(int))
    affine = rescale_affine(image.affine, image.shape, voxel_size_mm, shape)
    return resample_from_to(changed, (shape, affine), order=1, mode="nearest")
