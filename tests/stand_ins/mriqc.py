"""A stand-in for MRIQC 24: the command line of its documentation, and outputs of its names, made of nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import app_checks as checks

MODALITIES = ("T1w", "T2w", "bold", "dwi")


def main() -> int:
    line = checks.parser("mriqc")
    line.add_argument("bids_dir", type=checks.existing)
    line.add_argument("output_dir", type=Path)
    line.add_argument("analysis_level", nargs="+", choices=["participant", "group"])
    labels = ("--participant-label", "--participant_label", "--participant-labels", "--participant_labels")
    line.add_argument(*labels, dest="labels", nargs="+")
    line.add_argument("--session-id", nargs="*", default=[])
    line.add_argument("--bids-filter-file", type=checks.filters)
    line.add_argument("-m", "--modalities", nargs="*", choices=MODALITIES, default=MODALITIES)
    line.add_argument("--nprocs", "--n_procs", "--n_cpus", type=checks.positive)
    line.add_argument("--omp-nthreads", "--ants-nthreads", type=checks.positive)
    line.add_argument("--mem", "--mem_gb", "--mem-gb", type=checks.memory)
    line.add_argument("-w", "--work-dir", type=Path, default=Path("work"))
    line.add_argument("--no-sub", action="store_true")
    line.add_argument("--notrack", action="store_true")
    options = line.parse_args()
    checks.begin("mriqc", options.work_dir, options.bids_dir)
    if options.analysis_level == ["group"]:
        return group(options.output_dir)
    if not options.no_sub:
        sys.exit("there is no network to submit metrics by")
    subject = checks.subject_of(options.bids_dir, options.labels)
    sessions = checks.sessions_of(subject)
    if options.session_id and options.session_id != sessions:
        sys.exit(f"asked for sessions {options.session_id}, and there are {sessions}")
    images = [path for path in subject.rglob("*.nii*") if ending(path) in options.modalities]
    for image in images:
        name = image.name.split(".")[0]
        below = image.parent.relative_to(options.bids_dir)
        (options.output_dir / below).mkdir(parents=True, exist_ok=True)
        (options.output_dir / below / f"{name}.json").write_text(json.dumps({"bytes": image.stat().st_size}))
        (options.output_dir / f"{name}.html").write_text(f"<html>{name}</html>")
    checks.describe(options.output_dir, "MRIQC", "24.0.2")
    return 0 if images else 1


def ending(path: Path) -> str:
    return path.name.split(".")[0].rsplit("_", 1)[-1]


def group(out: Path) -> int:
    """The table of each modality, over the participants that were written before."""
    metrics = sorted(out.glob("sub-*/**/*.json"))
    if not metrics:
        print("no IQMs were found", file=sys.stderr)
        return 1
    for modality in sorted({ending(path) for path in metrics}):
        rows = [path.name.removesuffix(".json") for path in metrics if ending(path) == modality]
        (out / f"group_{modality}.tsv").write_text("\n".join(["bids_name", *rows]) + "\n")
        (out / f"group_{modality}.html").write_text("<html></html>")
    return 0


if __name__ == "__main__":
    sys.exit(main())
