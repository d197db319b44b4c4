"""A stand-in for fMRIPrep 25: the command line of its documentation, and outputs of its names, made of nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import app_checks as checks

LICENCE = Path("/opt/freesurfer/license.txt")


def main() -> int:
    line = checks.parser("fmriprep")
    line.add_argument("bids_dir", type=checks.existing)
    line.add_argument("output_dir", type=Path)
    line.add_argument("analysis_level", choices=["participant"])
    line.add_argument("--skip_bids_validation", "--skip-bids-validation", action="store_true")
    line.add_argument("--participant-label", "--participant_label", dest="labels", nargs="+")
    line.add_argument("--session-label", nargs="+", default=[])
    line.add_argument("--subject-anatomical-reference", choices=["first-lex", "unbiased", "sessionwise"])
    line.add_argument("--bids-filter-file", type=checks.filters)
    line.add_argument("--nprocs", "--nthreads", "--n_cpus", "--n-cpus", type=checks.positive)
    line.add_argument("--omp-nthreads", type=checks.positive)
    line.add_argument("--mem", "--mem_mb", "--mem-mb", type=checks.memory)
    line.add_argument("--anat-only", action="store_true")
    line.add_argument("--output-spaces", nargs="*")
    line.add_argument("--fs-license-file", type=checks.existing, default=LICENCE)
    line.add_argument("-w", "--work-dir", type=Path, default=Path("work"))
    line.add_argument("--stop-on-first-crash", action="store_true")
    line.add_argument("--notrack", action="store_true")
    options = line.parse_args()
    checks.begin("fmriprep", options.work_dir, options.bids_dir)
    licence = options.fs_license_file.read_text()
    if not licence.strip():
        sys.exit("a valid license file is required for FreeSurfer to run")
    subject = checks.subject_of(options.bids_dir, options.labels)
    sessions = checks.sessions_of(subject)
    if options.session_label and options.session_label != sessions:
        sys.exit(f"asked for sessions {options.session_label}, and there are {sessions}")
    by_session = options.subject_anatomical_reference == "sessionwise"
    if not list(subject.rglob("*_T1w.nii*")):
        sys.exit(f"no T1w images found for participant {subject.name}")
    if not options.anat_only and not list(subject.rglob("*_bold.nii*")):
        sys.exit(f"no BOLD images found for participant {subject.name}")
    for session in sessions if by_session else [""]:
        write(options.output_dir, subject.name, session)
    checks.describe(options.output_dir, "fMRIPrep", "25.2.5")
    return 0


def write(out: Path, subject: str, session: str) -> None:
    """The names of an anatomical workflow."""
    name = f"{subject}_ses-{session}" if session else subject
    anat = out / subject / (f"ses-{session}" if session else "") / "anat"
    anat.mkdir(parents=True)
    for ending in ("desc-preproc_T1w.nii.gz", "desc-brain_mask.nii.gz"):
        (anat / f"{name}_{ending}").write_bytes(b"image")
    (out / f"{name}.html").write_text(f"<html>{name}</html>")
    (out / "logs").mkdir(exist_ok=True)
    (out / "logs" / "CITATION.md").write_text("cite\n")


if __name__ == "__main__":
    sys.exit(main())
