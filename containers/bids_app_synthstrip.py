"""A BIDS App around SynthStrip: ``run.py BIDS_DIR OUT_DIR participant --participant-label LABEL [--session-label LABEL]``.

For every T1w image, ``OUT_DIR/sub-LABEL/[ses-LABEL/]anat/`` gets the brain (``..._desc-brain_T1w.nii.gz``) and its mask
(``..._desc-brain_mask.nii.gz``). It needs Python's standard library alone, since it runs in SynthStrip's own image.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "1.0.0"
IN_ITS_IMAGE = "/freesurfer/mri_synthstrip"
"""Where FreeSurfer's image of SynthStrip has the program, on ``PATH`` or not."""


def main() -> int:
    options = parser().parse_args()
    subject = options.bids_dir / f"sub-{options.participant_label.removeprefix('sub-')}"
    session = f"ses-{options.session_label.removeprefix('ses-')}" if options.session_label else "ses-*"
    images = sorted(subject.glob(f"{session}/anat/*_T1w.nii*"))
    if not options.session_label:
        images = sorted([*images, *subject.glob("anat/*_T1w.nii*")])
    if not images:
        sys.exit(f"{subject.name} has no T1w image")
    program = shutil.which("mri_synthstrip") or IN_ITS_IMAGE
    words = ["--no-csf"] if options.no_csf else []
    for image in images:
        folder = options.output_dir / image.parent.relative_to(options.bids_dir)
        folder.mkdir(parents=True, exist_ok=True)
        stem = image.name.split(".")[0].rsplit("_", 1)[0]
        brain, mask = (folder / f"{stem}_desc-brain_{suffix}.nii.gz" for suffix in ("T1w", "mask"))
        command = [sys.executable, program, "-i", image, "-o", brain, "-m", mask, *words]
        subprocess.run([str(word) for word in command], check=True)
        if not (brain.is_file() and mask.is_file()):
            sys.exit(f"SynthStrip has left no brain or no mask of {image.name}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line of BIDS Apps."""
    line = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("bids_dir", type=Path)
    line.add_argument("output_dir", type=Path)
    line.add_argument("analysis_level", choices=["participant"])
    line.add_argument("--participant-label", "--participant_label", required=True, metavar="LABEL")
    line.add_argument("--session-label", "--session_label", default="", metavar="LABEL")
    line.add_argument("--no-csf", action="store_true", help="leave cerebrospinal fluid out of the brain")
    line.add_argument("-v", "--version", action="version", version=VERSION)
    return line


if __name__ == "__main__":
    sys.exit(main())
