"""A BIDS App: ``run.py BIDS_DIR OUT_DIR participant|group [--participant-label LABEL ...]``.

Participant level: the brain of every T1w image, as ``OUT_DIR/sub-..._brain.nii.gz``. Group level: the average number of
voxels that are not 0 in those, as ``OUT_DIR/avg_brain_size.txt``. File names and figures are those of the BIDS App
example that the published experiment ran, so that its numbers can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nibabel as nib
import numpy as np

VERSION = "1.0.0"

COMPILED = Path("/opt/numba-cache")
"""What brainextractor.def has compiled."""


def main() -> int:
    options = parser().parse_args()
    if options.analysis_level == "group":
        return average(options)
    labels = [label.removeprefix("sub-") for label in options.participant_label] or everyone(options.bids_dir)
    with compiled_code():
        for label in labels:
            subject = options.bids_dir / f"sub-{label}"
            if not subject.is_dir():
                sys.exit(f"{subject.name} is not in the dataset")
            images = sorted([*subject.glob("anat/*_T1w.nii*"), *subject.glob("ses-*/anat/*_T1w.nii*")])
            brains = [extract(image, options) for image in images]
            summary = {"T1w": [str(image.relative_to(options.bids_dir)) for image in images], "brains": brains}
            (options.output_dir / f"sub-{label}_summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line of BIDS Apps."""
    line = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("bids_dir", type=Path)
    line.add_argument("output_dir", type=Path)
    line.add_argument("analysis_level", choices=["participant", "group"])
    line.add_argument("--participant-label", "--participant_label", nargs="+", default=[], metavar="LABEL")
    line.add_argument("--skip-bids-validator", "--skip_bids_validator", action="store_true", help="it never validates")
    line.add_argument("--iterations", type=int, default=1000, help="steps of brainextractor")
    line.add_argument("-w", "--work-dir", type=Path, help="folder for intermediate files")
    line.add_argument("-v", "--version", action="version", version=VERSION)
    return line


def everyone(bids_dir: Path) -> list[str]:
    """Labels of all participants."""
    return sorted(folder.name.removeprefix("sub-") for folder in bids_dir.glob("sub-*") if folder.is_dir())


@contextmanager
def compiled_code() -> Iterator[None]:
    """Have numba find what the image has compiled, in a copy: it uses no folder that it cannot write to."""
    if "NUMBA_CACHE_DIR" in os.environ or not COMPILED.is_dir():
        yield
        return
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(COMPILED, copy, dirs_exist_ok=True)
        os.environ["NUMBA_CACHE_DIR"] = copy
        yield


def extract(image: Path, options: argparse.Namespace) -> str:
    """Extract one brain; the name of its file."""
    name = image.name.removesuffix(".gz").replace("_T1w.nii", "_brain.nii.gz")
    if shutil.which("bet"):
        subprocess.run(["bet", str(image), str(options.output_dir / name)], check=True)
        if not (options.output_dir / name).is_file():  # bet returns 0 whatever it could not do
            sys.exit(f"bet wrote no brain of {image.name}")
        return name
    from brainextractor import BrainExtractor

    head = nib.load(image)
    extractor = BrainExtractor(img=head)
    extractor.run(iterations=options.iterations)
    brain = np.where(extractor.compute_mask() > 0, np.asanyarray(head.dataobj), 0)
    made = nib.Nifti1Image(brain.astype(head.get_data_dtype()), head.affine, head.header)
    if options.work_dir:  # a half-written brain must not have a final name
        options.work_dir.mkdir(parents=True, exist_ok=True)
        nib.save(made, options.work_dir / name)
        shutil.move(options.work_dir / name, options.output_dir / name)
    else:
        nib.save(made, options.output_dir / name)
    return name


def average(options: argparse.Namespace) -> int:
    """The group level."""
    sizes = [
        int((np.asanyarray(nib.load(brain).dataobj) != 0).sum())
        for label in everyone(options.bids_dir)
        for brain in sorted(options.output_dir.glob(f"sub-{label}_*brain.nii*"))
    ]
    if not sizes:
        sys.exit("there is no brain to average")
    (options.output_dir / "avg_brain_size.txt").write_text(f"Average brain size is {np.mean(sizes):g} voxels")
    print(f"averaged {len(sizes)} brains")
    return 0


if __name__ == "__main__":
    sys.exit(main())
