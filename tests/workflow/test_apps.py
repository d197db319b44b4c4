"""The examples of MRIQC and fMRIPrep, with stand-ins that take the same command lines and are strict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_images import Engine, make_stand_in
from neurotier.core.places import file_of
from support import ROOT, Project, plain_dataset, read_json, sha256, small_head

SDM = ("--sdm", "apptainer")
DONE = "derivatives/dataset_description.json"
"""What is there once the group level is over, or would be if the app had one."""


@pytest.fixture
def study(project: Project) -> dict[str, Any]:
    """Two participants, the first of two sessions, with an anatomical and a functional image in each."""
    sessions = [("01", "1"), ("01", "2"), ("02", "1")]
    names = {f"sub-{label}/ses-{session}/{{0}}/sub-{label}_ses-{session}" for label, session in sessions}
    images = {name.format("anat") + "_T1w.nii.gz": small_head() for name in names}
    images |= {name.format("func") + "_task-rest_bold.nii.gz": small_head(1) for name in names}
    plain_dataset(project.folder / "bids", images)
    return {"source": "bids"}


def example(name: str, project: Project, results: str = "", **sections: Any) -> list[str]:
    """Arguments for an example as it is shipped, and a configuration over it."""
    _, own = project.configure(**sections)
    given = ["--config", f"results={results}"] if results else []
    return ["--configfile", str(ROOT / "config" / "examples" / f"{name}.yaml"), own, *given, *SDM]


def called(project: Project, results: Path, participant: str, name: str) -> list[str]:
    """How the stand-in was called for a participant."""
    log = file_of(results / "logs" / "analyze_participant", participant).with_suffix(".log")
    return calls_in(log, name)


def calls_in(log: Path, name: str) -> list[str]:
    start = f"{name} called with "
    lines = [line for line in log.read_text().splitlines() if line.startswith(start)]
    return [" ".join(json.loads(line.removeprefix(start))) for line in lines]


def record_of(results: Path, participant: str) -> dict[str, Any]:
    read: dict[str, Any] = read_json(file_of(results / "profile" / "records", participant))
    return read


def names_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("datalad_container")
def test_mriqc_by_session_and_at_the_group_level(
    project: Project, study: dict[str, Any], engine: Engine, tmp_path: Path
) -> None:
    """Its image comes from a DataLad container dataset."""
    image = make_stand_in(engine, tmp_path / "image", "mriqc.py")
    containers = project.folder / "containers-dataset"
    for words in (
        ["create", str(containers)],
        ["containers-add", "-d", str(containers), "--url", str(image), "bids-mriqc"],
    ):
        ended = project.ended(["datalad", *words])
        assert ended.code == 0, ended.output
    app = {"image": "datalad:containers-dataset#bids-mriqc", "memory_mb": 2500}
    given = example("mriqc", project, dataset=study, app=app)
    results = project.folder / "results-mriqc"
    ended = project.succeeds(f"results-mriqc/{DONE}", *given, cores=3)
    common = "-w /work/intermediate --nprocs 3 --omp-nthreads 3 --mem-gb 2 --no-sub --notrack"
    participant = "/data /out participant --participant-label 01 --session-id"
    assert called(project, results, "sub-01", "mriqc") == [f"{participant} {session} {common}" for session in "12"]
    assert len(called(project, results, "sub-02", "mriqc")) == 1
    (log,) = (results / "logs" / "run_group_level").glob("*.log")
    group = "/data /out group -w /work/intermediate --nprocs 3 --mem-gb 2 --no-sub --notrack"
    assert calls_in(log, "mriqc") == [group]
    made = names_below(results / "derivatives")
    assert made >= {
        *("group_T1w.tsv", "group_bold.tsv", "sub-01_ses-1_T1w.html", "sub-01_ses-2_task-rest_bold.html"),
        *("sub-01/ses-2/anat/sub-01_ses-2_T1w.json", "sub-02/ses-1/anat/sub-02_ses-1_T1w.json"),
    }
    assert len((results / "derivatives" / "group_T1w.tsv").read_text().splitlines()) == 1 + 3
    record = record_of(results, "sub-01")
    assert record["calls"] == [{"session": "1", "attempts": 1}, {"session": "2", "attempts": 1}]
    assert (record["tool"], record["container"]) == ("mriqc", f"sha256:{sha256(image)}")
    phases = [phase["phase"] for phase in record["phases"]]
    assert phases == ["start_up", "stage_in", "container_start", "compute", "stage_out"]
    assert read_json(results / "index" / "image.json")["sha256"] == sha256(image)
    assert project.leftovers() == []


@pytest.mark.nightly
def test_fmriprep_with_licence_templates_and_filters(
    project: Project, study: dict[str, Any], engine: Engine, tmp_path: Path
) -> None:
    (project.folder / "license.txt").write_text("me@example.org\n")
    (project.folder / "fmriprep-filter.json").write_text('{"t1w": {"session": "1"}}')
    flow = project.folder / "templateflow" / "tpl-MNI152NLin2009cAsym"
    flow.mkdir(parents=True)
    (flow / "tpl-MNI152NLin2009cAsym_res-02_T1w.nii.gz").write_bytes(b"template")
    app = {"image": str(make_stand_in(engine, tmp_path / "image", "fmriprep.py")), "threads": 2, "memory_mb": 1500}
    given = example("fmriprep", project, dataset=study, app=app)
    results = project.folder / "results-fmriprep"
    ended = project.succeeds("results-fmriprep/" + DONE, *given)
    arguments = (
        "-w /work/intermediate --skip-bids-validation --bids-filter-file /filter.json --nthreads 2 --omp-nthreads 2"
        " --mem 1500 --fs-license-file /opt/freesurfer/license.txt --output-spaces MNI152NLin2009cAsym:res-2"
        " --stop-on-first-crash --notrack"
    )
    participant = "/data /out participant --participant-label"
    assert called(project, results, "sub-01", "fmriprep") == [f"{participant} 01 {arguments}"]
    made = names_below(results / "derivatives")
    assert made >= {"sub-01.html", "sub-02.html", "sub-01/anat/sub-01_desc-preproc_T1w.nii.gz"}
    caches = read_json(results / "index" / "caches.json")
    record = record_of(results, "sub-01")
    assert record["caches"] == {"templateflow": f"sha256:{caches['templateflow']['sha256']}"}
    (placed,) = project.folder.glob("neurotier-*/images/templateflow-*.folder")
    assert names_below(placed) == names_below(project.folder / "templateflow")
    assert project.leftovers() == []

    (project.folder / "fmriprep-filter.json").write_text('{"t1w": {"session": "2"}}')
    ended = project.fails("participants", *given, "--dry-run")
    assert ended.lines("has 2 participants analysed with filter "), "other filters make other results"
    ended = project.snakemake("participants", *given, "--forcerun", "analyze_participants", "--dry-run")
    assert ended.analysed == ["sub-01", "sub-02"]

    arguments_by_session = [*arguments_of("fmriprep"), "--subject-anatomical-reference", "sessionwise"]
    by_session = {"level": "session", "session_option": "--session-label", "arguments": arguments_by_session}
    given = example("fmriprep", project, "by-session", dataset=study, app={**app, **by_session})
    ended = project.succeeds("by-session/" + DONE, *given)
    results = project.folder / "by-session"
    assert called(project, results, "sub-01", "fmriprep") == [
        f"{participant} 01 --session-label {session} {arguments} --subject-anatomical-reference sessionwise"
        for session in "12"
    ]
    made = names_below(results / "derivatives")
    assert made >= {"sub-01_ses-1.html", "sub-01_ses-2.html", "sub-01/ses-2/anat/sub-01_ses-2_desc-brain_mask.nii.gz"}


def arguments_of(name: str) -> list[str]:
    """The arguments of an example."""
    shipped = yaml.safe_load((ROOT / "config" / "examples" / f"{name}.yaml").read_text())
    words: list[str] = shipped["app"]["arguments"]
    return words
