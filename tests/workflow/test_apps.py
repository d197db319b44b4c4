"""The examples of MRIQC and fMRIPrep: how they call an app, with one in their place that says what it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from container_images import Engine, make_tiny
from shown_values import shown
from support import ROOT, Project, datalad, plain_dataset, read_json, sha256, small_head, wait_for

SDM = ("--sdm", "apptainer")
DONE = "profile/steps/run_group_level.json"
"""What is there once the group level is over, or would be if the app had one."""

CALLED = "called with "
APP = f"""echo "{CALLED}$*"
[ -z "$TEMPLATEFLOW_HOME" ] || cat /filter.json /opt/freesurfer/license.txt "$TEMPLATEFLOW_HOME"/*/*
case $3 in
participant)
    for image in $(find /data -name '*.nii.gz'); do
        name=${{image##*/}}
        echo >/out/${{name%.nii.gz}}.html
    done
    ;;
group) ls /out/*.html >/out/group.tsv ;;
esac"""
"""Writes a page for each image that it sees, and a list of all pages at the group level."""


@pytest.fixture
def study(project: Project) -> None:
    """Two participants, the first of two sessions, with an anatomical and a functional image in each."""
    sessions = [("01", "1"), ("01", "2"), ("02", "1")]
    names = {f"sub-{label}/ses-{session}/{{0}}/sub-{label}_ses-{session}" for label, session in sessions}
    images = {name.format("anat") + "_T1w.nii.gz": small_head() for name in names}
    images |= {name.format("func") + "_task-rest_bold.nii.gz": small_head(1) for name in names}
    plain_dataset(project.folder / "bids", images)


def example(name: str, project: Project, results: str = "", **sections: Any) -> list[str]:
    """Arguments for an example as it is shipped, and a configuration over it."""
    project.configure(**sections)
    given = ["--config", f"results={results}"] if results else []
    return ["--configfile", f"config/examples/{name}.yaml", "own.yaml", *given, *SDM]


def calls_in(log: Path) -> list[str]:
    """How the app was called."""
    return [line.removeprefix(CALLED) for line in log.read_text().splitlines() if line.startswith(CALLED)]


@pytest.mark.usefixtures("datalad_container")
def test_mriqc_by_session_and_at_the_group_level(project: Project, study: None, engine: Engine, tmp_path: Path) -> None:
    """Its image comes from a DataLad container dataset."""
    image = make_tiny(engine, tmp_path, APP)
    containers = project.folder / "containers-dataset"
    datalad(project.folder, "create", containers)
    datalad(containers, "containers-add", "--url", image, "bids-mriqc")
    app = {"image": "datalad:containers-dataset#bids-mriqc", "memory_mb": 2500}
    made = Project(project.folder, results_name="results-mriqc")
    project.succeeds(f"results-mriqc/{DONE}", *example("mriqc", project, app=app), cores=3)
    common = "-w /work/intermediate --nprocs 3 --omp-nthreads 3 --mem-gb 2 --no-sub --notrack"
    participant = "/data /out participant --participant-label 01 --session-id"
    assert calls_in(made.log("sub-01")) == [f"{participant} {session} {common}" for session in "12"]
    assert len(calls_in(made.log("sub-02"))) == 1
    (log,) = (made.results / "logs/run_group_level").glob("*.log")
    assert calls_in(log) == ["/data /out group -w /work/intermediate --nprocs 3 --mem-gb 2 --no-sub --notrack"]
    assert len((made.derivatives / "group.tsv").read_text().splitlines()) == 2 * 3
    record = made.record("sub-01")
    assert record["calls"] == [{"session": "1", "attempts": 1}, {"session": "2", "attempts": 1}]
    assert shown(record, "tool container") == f"mriqc sha256:{sha256(image)}"
    phases = [phase["phase"] for phase in record["phases"]]
    assert phases == ["start_up", "stage_in", "container_start", "compute", "stage_out"]
    assert read_json(made.results / "index/image.json")["sha256"] == sha256(image)
    assert project.leftovers() == []


def test_times_of_an_app_that_was_started_again_are_not_for_comparison(
    project: Project, study: None, engine: Engine, tmp_path: Path
) -> None:
    """It ends so while a file is there: what failed is part of its participant's time."""
    flag = project.folder / "flags" / "busy"
    flag.parent.mkdir()
    flag.touch()
    image = make_tiny(engine, tmp_path, "[ ! -e /flags/busy ] || exit 75; echo >/out/sub-02.html")
    app = {"image": image, "group": False, "retry_exit_codes": [75], "attempts": 1000, "memory_mb": 500}
    containers = {"binds": [f"{flag.parent}:/flags"]}
    dataset = {"source": "bids", "participants": ["02"]}
    started = project.start(*SDM, dataset=dataset, app=app, containers=containers)
    log = project.log("sub-02")
    wait_for(lambda: log.exists() and "is started again" in log.read_text(), started)
    flag.unlink()
    started.ended().succeeded()
    assert project.record("sub-02")["calls"][0]["attempts"] > 1
    assert "or app restarted" in project.only_run["valid"]


@pytest.mark.nightly
def test_fmriprep_with_licence_templates_and_filters(
    project: Project, study: None, engine: Engine, tmp_path: Path
) -> None:
    (project.folder / "license.txt").write_text("me@example.org\n")
    (project.folder / "fmriprep-filter.json").write_text('{"t1w": {"session": "1"}}\n')
    template = project.folder / "templateflow/tpl-MNI152NLin2009cAsym/tpl-MNI152NLin2009cAsym_T1w.nii.gz"
    template.parent.mkdir(parents=True)
    template.write_text("template\n")
    app = {"image": make_tiny(engine, tmp_path, APP), "threads": 2, "memory_mb": 1500}
    given = example("fmriprep", project, app=app)
    made = Project(project.folder, results_name="results-fmriprep")
    project.succeeds("results-fmriprep/" + DONE, *given)
    arguments = (
        "-w /work/intermediate --skip-bids-validation --bids-filter-file /filter.json --nthreads 2 --omp-nthreads 2"
        " --mem 1500 --fs-license-file /opt/freesurfer/license.txt --output-spaces MNI152NLin2009cAsym:res-2"
        " --stop-on-first-crash --notrack"
    )
    participant = "/data /out participant --participant-label"
    assert calls_in(made.log("sub-01")) == [f"{participant} 01 {arguments}"]
    seen = made.log("sub-01").read_text().splitlines()
    assert {'{"t1w": {"session": "1"}}', "me@example.org", "template"} <= set(seen)
    caches = read_json(made.results / "index/caches.json")
    assert made.record("sub-01")["caches"] == {"templateflow": f"sha256:{caches['templateflow']['sha256']}"}
    (placed,) = project.folder.glob("neurotier-*/images/templateflow-*.folder")
    assert [path.name for path in placed.rglob("*.nii.gz")] == [template.name]
    assert project.leftovers() == []

    (project.folder / "fmriprep-filter.json").write_text('{"t1w": {"session": "2"}}')
    ended = project.fails("participants", *given, "--dry-run")
    assert ended.lines("has 2 participants analysed with filter "), "other filters make other results"
    ended = project.snakemake("participants", *given, "--forcerun", "analyze_participants", "--dry-run")
    assert ended.analysed == ["sub-01", "sub-02"]

    shipped: list[str] = yaml.safe_load((ROOT / "config/examples/fmriprep.yaml").read_text())["app"]["arguments"]
    sessionwise = ["--subject-anatomical-reference", "sessionwise"]
    by_session = {"level": "session", "session_option": "--session-label", "arguments": shipped + sessionwise}
    given = example("fmriprep", project, "by-session", app={**app, **by_session})
    project.succeeds("by-session/" + DONE, *given)
    assert calls_in(Project(project.folder, results_name="by-session").log("sub-01")) == [
        f"{participant} 01 --session-label {session} {arguments} {' '.join(sessionwise)}" for session in "12"
    ]


@pytest.mark.nightly
def test_what_an_app_is_asked_for_counts_also_in_a_folder_that_was_moved(
    project: Project, study: None, engine: Engine, tmp_path: Path
) -> None:
    """Only Snakemake knew it, by the paths of results: derivatives of another image, or of people who are not selected
    any more, passed for what is asked for."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    images = [
        make_tiny(engine, tmp_path / name, f"echo {name}; {APP}\necho $1 $4 >>/out/{name}") for name in ("one", "two")
    ]

    def run(results: str, *words: str, dataset: Any = "bids", **app: Any) -> Project:
        project.succeeds(
            "all", *SDM, *words, app={"image": images[0], "group": True} | app, results=results, dataset=dataset
        )
        project.succeeds("all", *SDM).says("Nothing to be done")
        return Project(project.folder, results_name=results)

    run("first").results.rename(project.folder / "second")
    (log,) = (project.folder / "second/logs/run_group_level").glob("*.log")
    some = run("second", dataset={"source": "bids", "participants": ["01"]}, group_arguments=["--mean"])
    assert calls_in(log) == ["/data /out group --mean"]
    assert sorted(path.name for path in some.derivatives.glob("sub-*.html")) == [
        f"sub-01_ses-{session}_{suffix}.html" for session in "12" for suffix in ("T1w", "task-rest_bold")
    ]
    some.results.rename(project.folder / "third")
    other = run("third", "--forcerun", "analyze_participants", image=images[1])
    assert {record["container"] for record in map(read_json, other.records())} == {f"sha256:{sha256(images[1])}"}
    assert (other.derivatives / "two").exists()
    assert not (other.derivatives / "one").exists()

    def made_by() -> str:
        return str(read_json(other.results / DONE)["run"])

    before = made_by()
    (project.folder / "bids/participants.tsv").write_text("participant_id\tage\nsub-01\t20\n")
    run("third", image=images[1])
    assert made_by() != before, "a plain folder has no version, and the group level reads its tables"
