"""The workflow with ``--sdm apptainer``: the same bytes, one image for all, BIDS Apps at both levels."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from conftest import nightly, too_long
from container_images import Engine, make_tiny
from shown_values import shown
from support import Ended, Project, checksums, numbered, processes_in, read_json, t1w, wait_for

QUICK = {"iterations": 50}
SDM = ("--sdm", "apptainer")
NO_PAGE = ["participants", "results/profile/profile.tsv"]
"""Targets where neither figures nor page matter: derivatives and tables."""

LOADED, SAVED = "[cache] data loaded from", "[cache] data saved to"
"""What numba prints of compiled code if it is asked to (``NUMBA_DEBUG_CACHE``)."""

APP = """level=$3
case $level in
participant)
    ls -R /data
    mkdir -p /out/sub-$5
    ls -d /data/sub-* | wc -l >/out/sub-$5/subjects
    echo same >/out/shared.txt
    cat /data/sub-$5/anat/* | wc -c >/out/sub-$5/bytes
    sleep PAUSE
    ;;
group)
    cat /out/sub-*/bytes >/out/group.txt
    ;;
esac"""
"""A BIDS App in a few lines of shell: it writes what it sees, waits, and adds up."""


@pytest.fixture(scope="module")
def contained(lasting: Project, demo_source: Path, brain_image: Path) -> Iterator[Project]:
    """The demonstration on the host, and in containers with the image on tmpfs."""
    described = [f"results-host/derivatives/{site}/dataset_description.json" for site in ("SiteA", "SiteB")]
    on_host = ["participants", *described, "results-host/profile/profile.tsv"]
    configure(lasting, demo_source, brain_image)
    lasting.succeeds(*on_host, "--config", "results=results-host")
    lasting.succeeds(*SDM, *IN_CONTAINERS)
    (lasting.folder / "results").symlink_to("results-container")
    yield lasting
    remove_placed(brain_image)


IN_CONTAINERS = ("--config", "results=results-container")


def configure(project: Project, source: Path, image: Path, images: str = "tmpfs", form: str = "sif") -> None:
    project.configure(
        dataset=source,
        tool={"brainextractor": {**QUICK, "image": image}},
        placement={"images": images},
        containers={"form": form, "environment": {"NUMBA_DEBUG_CACHE": "1"}},
    )


def remove_placed(image: Path) -> None:
    """Take an image away from the tmpfs tier, as a boot does."""
    for placed in Path("/dev/shm").glob(f"neurotier-*/images/{image.stem}-*"):
        shutil.rmtree(placed) if placed.is_dir() else placed.unlink()


@too_long
def test_derivatives_are_the_same_bytes_with_and_without_containers(contained: Project) -> None:
    host, container = (checksums(contained.folder / f"results-{name}/derivatives") for name in ("host", "container"))
    assert host == container
    assert len(host) == 28
    assert contained.leftovers() == []


@too_long
def test_starting_the_container_is_a_phase_of_its_own(contained: Project, brain_image: Path) -> None:
    rows = contained.table("profile/profile.tsv", phase="container_start")
    assert len(rows) == 4
    for row in rows:
        assert 0 < float(row["cpu_s"]) <= float(row["wall_s"]) * 1.5
        assert int(row["input_bytes"]) == brain_image.stat().st_size
    assert "container_start" not in (contained.folder / "results-host/profile/profile.tsv").read_text()
    traffic = contained.columns("tier traffic_source", "profile/traffic.tsv", phase="container_start")
    assert set(traffic) == {"tmpfs page_cache"}


@too_long
def test_the_image_is_recorded_and_shown(contained: Project, brain_image: Path) -> None:
    image = read_json(contained.results / "index/image.json")
    assert image["reference"] == str(brain_image)
    assert contained.record("SiteA/sub-0099001")["container"] == f"sha256:{image['sha256']}"
    assert shown(contained.only_run, "image images_tier") == f"{brain_image} tmpfs"
    assert contained.columns("step phase", "profile/steps.tsv") == ["obtain_image obtain"]
    page = contained.page("report")
    assert image["sha256"] in page
    assert "Container start" in page


@too_long
def test_another_tier_or_form_of_the_image_is_no_reason_to_analyse_again(
    contained: Project, demo_source: Path, brain_image: Path
) -> None:
    configure(contained, demo_source, brain_image, "local", "sandbox")
    contained.succeeds(*SDM, "--dry-run", *IN_CONTAINERS).says("Nothing to be done")


@too_long
def test_a_lost_image_is_placed_again_and_nobody_is_analysed_again(
    contained: Project, demo_source: Path, brain_image: Path
) -> None:
    remove_placed(brain_image)
    configure(contained, demo_source, brain_image)
    contained.snakemake(*SDM, *IN_CONTAINERS).says("Nothing to be done")
    shutil.rmtree(contained.derivatives / "SiteB/sub-0099102")
    assert contained.succeeds("participants", *SDM, *IN_CONTAINERS).analysed == ["SiteB/sub-0099102"]
    host = checksums(contained.folder / "results-host/derivatives")
    assert checksums(contained.derivatives) == host


@too_long
def test_what_the_image_has_compiled_is_not_compiled_again(
    contained: Project, engine: Engine, brain_image: Path, tmp_path: Path
) -> None:
    """Neither for the store, which keeps what tools compile, nor for participants."""
    (kept,) = contained.folder.glob("neurotier-*/image-store/*.cache")
    engine.run(brain_image, tmp_path, "cp -R /opt/numba-cache /work/made")
    assert checksums(kept) == checksums(tmp_path / "made")
    said = "".join(log.read_text() for log in logs_of(contained, "analyze_participant"))
    assert LOADED in said
    assert SAVED not in said


def logs_of(project: Project, rule: str) -> list[Path]:
    return [file for file in (project.results / "logs" / rule).rglob("*") if file.is_file()]


@too_long
@pytest.mark.parametrize(
    ("suffixes", "sites", "participants", "brains"),
    [(["T1w"], ["SiteA", "SiteB"], [], 3), ([], ["SiteA"], ["0099001", "0099003"], 1)],
)
def test_the_example_app_runs_at_both_levels(
    project: Project,
    demo_source: Path,
    app_image: Path,
    suffixes: list[str],
    sites: list[str],
    participants: list[str],
    brains: int,
) -> None:
    """Over sites with uneven sessions; who has no T1w image is left out by suffix, or is the app's to deal with."""
    app = {"image": app_image, "suffixes": suffixes, "arguments": ["--skip_bids_validator", "--iterations", "20"]}
    dataset = {"source": demo_source, "sites": sites, "participants": participants, "validation": "report"}
    containers = {"environment": {"NUMBA_DEBUG_CACHE": "1"}}
    project.succeeds(*NO_PAGE, *SDM, dataset=dataset, app=app, containers=containers)
    said = "".join(log.read_text() for log in logs_of(project, "analyze_participant"))
    assert LOADED in said
    assert SAVED not in said
    for site in sites:
        images = (project.derivatives / site).glob("sub-*_brain.nii.gz")
        brain_sizes = [int((np.asanyarray(nib.load(image).dataobj) != 0).sum()) for image in images]
        assert len(brain_sizes) == brains
        average = (project.derivatives / site / "avg_brain_size.txt").read_text()
        assert average == f"Average brain size is {np.mean(brain_sizes):g} voxels"
        description = read_json(project.derivatives / site / "dataset_description.json")
        assert description["GeneratedBy"][-1]["Container"]["Type"] == "apptainer"
    summary = project.derivatives / "SiteA/sub-0099003_summary.json"
    assert summary.exists() == (suffixes == [])
    if not suffixes:
        assert read_json(summary) == {"T1w": [], "brains": []}
    steps = {(row["step"], row["item"], row["phase"]) for row in project.table("profile/steps.tsv")}
    for site in sites:
        assert ("validate_dataset", site, "validate") in steps
        assert {("run_group_level", site, phase) for phase in ("stage_in", "container_start", "compute")} <= steps
    phases = project.columns("phase", "profile/profile.tsv", participant="SiteA/sub-0099001")
    assert phases == ["start_up", "stage_in", "container_start", "compute", "stage_out"]
    assert project.leftovers() == []


def tiny_app(engine: Engine, folder: Path, script: str = APP, pause_s: float = 0) -> dict[str, Any]:
    folder.mkdir()
    return {"image": make_tiny(engine, folder, script.replace("PAUSE", str(pause_s))), "name": "tiny"}


@pytest.mark.parametrize("form", ["sif", *nightly("sandbox")])
def test_25_participants_at_once_from_one_image(project: Project, engine: Engine, tmp_path: Path, form: str) -> None:
    app = tiny_app(engine, tmp_path / "app", pause_s=1)
    project.heads(*numbered(25))
    project.succeeds(*NO_PAGE, *SDM, cores=25, app=app, containers={"form": form})
    assert len(project.records()) == 25
    assert not list(project.results.glob("state/failures/**/*.json"))
    assert int(project.only_run["peak_parallelism"]) > 5
    (image,) = project.folder.glob("neurotier-*/images/tiny-*." + form)
    assert len(project.table("profile/steps.tsv", step="obtain_image")) == 1
    for number in range(25):
        folder = project.derivatives / f"sub-{number:02d}"
        assert (folder / "subjects").read_text() == "1\n", "an app sees its own participant alone"
        source = project.folder / "bids" / t1w(f"{number:02d}")
        assert int((folder / "bytes").read_text()) == source.stat().st_size
    assert len((project.derivatives / "group.txt").read_text().split()) == 25
    assert (project.derivatives / "shared.txt").read_text() == "same\n"
    assert nothing_left(project, image)


def nothing_left(project: Project, image: Path) -> bool:
    """No work folder, process, mount or loop device of a run."""
    mounted = Path("/proc/mounts").read_text()
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # another test's, which has been detached since
            mounted += file.read_text()
    return not project.leftovers() and str(image) not in mounted and not processes_in(project.folder)


@pytest.mark.nightly
def test_killing_one_of_many_leaves_nothing_of_it(project: Project, engine: Engine, tmp_path: Path) -> None:
    app = tiny_app(engine, tmp_path / "app", pause_s=4)
    sif = {"form": "sif"}  # with a mount that could be left behind
    project.heads(*numbered(6))
    snakemake = project.start(*SDM, cores=6, app=app, containers=sif)
    killed: list[int] = []

    def victim() -> int | None:
        """Who analyses one participant, once its app has written something."""
        for file in project.folder.glob("neurotier-*/work/*/sub-03/out/sub-03/bytes"):
            with suppress(FileNotFoundError):  # the folder is being removed: that of the one before
                pid: int = read_json(file.parents[2] / "owner.json")["pid"]
                if pid not in killed:
                    return pid
        return None

    for _ in range(2):  # after the first time it is analysed once more
        killed.append(wait_for(victim, snakemake))
        os.kill(killed[-1], signal.SIGKILL)
    snakemake.ended().failed()
    (image,) = project.folder.glob("neurotier-*/images/tiny-*.sif")
    assert nothing_left(project, image)
    assert not (project.results / "app/sub-03").exists()
    assert len(list((project.results / "app").glob("sub-*"))) == 5
    assert "the job was killed by SIGKILL, out of memory?" in project.page("report")
    assert project.succeeds("participants", *SDM).analysed == ["sub-03"]


FAILING = {
    "00": ("echo 'no such luck' >&2; exit 3", "tiny: the app ended with exit code 3: no such luck"),
    "01": ("true", "tiny: the app wrote nothing, although its exit code is 0"),
    "02": ("echo x >/data/x", "tiny: the app ended with exit code 1"),
    "03": ("exec nonesuch", "tiny: the app ended with exit code 127: "),
}
"""What an app does for a participant, and what is then said."""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> tuple[Project, Ended]:
    """A run in which an app fails for everyone, each time in another way."""
    folder = tmp_path_factory.mktemp("failing")
    project = Project.at(folder / "project")
    ways = "\n".join(f"participant{label}) {script} ;;" for label, (script, _) in FAILING.items())
    app = tiny_app(engine, folder / "app", f"case $3$5 in\n{ways}\nesac")
    project.heads(*numbered(len(FAILING)))
    return project, project.fails("participants", *SDM, "--keep-going", app=app)


@pytest.mark.parametrize("label", FAILING)
def test_an_app_that_fails_is_said_so(failing: tuple[Project, Ended], label: str) -> None:
    project, ended = failing
    ended.says(f"neurotier: sub-{label}: {FAILING[label][1]}")
    assert not (project.derivatives).exists()
    assert not (project.results / f"app/sub-{label}").exists()
    assert project.leftovers() == []


def test_derivatives_stay_a_dataset_while_the_group_level_cannot_be_done_again(
    project: Project, engine: Engine, tmp_path: Path
) -> None:
    project.heads(*numbered(2))
    group = "[ $4 ] && exit 5; ls /out >/out/all"
    script = f"case $3$5 in participant01) exit 3 ;; group) {group} ;; *) echo >/out/sub-$5 ;; esac"
    both = {"app": tiny_app(engine, tmp_path / "app", script)}
    one = both | {"dataset": {"source": project.folder / "bids", "participants": ["-sub-01"]}}
    project.succeeds(*NO_PAGE, *SDM, **one)
    made = {file.name: file.read_text() for file in project.derivatives.iterdir()}
    assert set(made) == {"all", "dataset_description.json", "sub-00"}
    project.fails(*NO_PAGE, *SDM, **both).says("sub-01: tiny: the app ended with exit code 3")
    arguments = {"app": both["app"] | {"group_arguments": ["x"]}}
    project.fails(*NO_PAGE, *SDM, **one | arguments).says("; app.group: false skips the group level")
    assert {file.name: file.read_text() for file in project.derivatives.iterdir()} == made
    (project.derivatives / "all").unlink()
    project.succeeds(*NO_PAGE, *SDM, **one).says("Merging the outputs of participants, in results/")
    assert {file.name: file.read_text() for file in project.derivatives.iterdir()} == made
    os.utime(project.results / "profile/steps/run_group_level.json", (2**31, 2**31))  # a node's clock was ahead
    (project.results / "profile/profile.tsv").unlink()
    project.succeeds(*NO_PAGE, *SDM, **one).says("Tabulating where the time of participants went")


@pytest.mark.nightly
def test_results_of_a_tool_are_not_mixed_with_those_of_an_app(project: Project, engine: Engine, tmp_path: Path) -> None:
    project.heads("00")
    project.succeeds("participants", tool="noop")
    surfaces = project.derivatives / "sourcedata/freesurfer"  # where fMRIPrep has them
    script = "cd /out; mkdir -p sub-00 sourcedata/freesurfer; echo >sub-00/subjects; echo >sourcedata/freesurfer/lh"
    project.fails(*SDM, app=tiny_app(engine, tmp_path / "app", script)).says(
        "has 1 participant analysed with tool noop, image none, and this run has app "
    )
    project.succeeds(*SDM, "--forcerun", "analyze_participants")
    assert (project.derivatives / "sub-00/subjects").exists()
    assert (surfaces / "lh").exists()
    project.succeeds("participants", "--forcerun", "analyze_participants", tool="noop")
    assert not (project.results / "app").exists()
    assert not (project.derivatives / "sub-00/subjects").exists()
    assert not surfaces.exists()


def test_an_app_without_containers_is_said_so(project: Project) -> None:
    project.heads("00")
    project.fails(app={"image": "x.sif"}).says(
        "config key app.image: a BIDS App runs in a container; add --sdm apptainer"
    )


def test_a_dataset_that_must_be_valid_and_is_not_stops_before_anybody(project: Project) -> None:
    (project.heads("00") / "dataset_description.json").write_text("{}")
    project.configure(dataset={"source": "bids", "validation": "require"}, tool="noop")
    for _ in range(2):  # what was found the first time is no reason to take it for checked
        ended = project.fails()
        ended.says("neurotier: dataset: is not valid BIDS: ")
        assert not ended.analysed
    project.heads("00")  # with a description; the index stays as it is
    assert project.succeeds("participants").analysed == ["sub-00"]


@pytest.mark.nightly
def test_a_dataset_that_must_be_valid_is_looked_at_again_when_it_is_indexed_again(project: Project) -> None:
    project.heads("00")
    project.succeeds("participants", dataset={"source": "bids", "validation": "require"}, tool="noop")
    project.heads("00", "01")
    (project.folder / "bids/sub-01/anat/sub-01_T1w.json").write_text("{")
    ended = project.fails("participants", "--forcerun", "index_dataset")
    ended.says("neurotier: dataset: is not valid BIDS: JSON_INVALID (1)")
    assert not ended.analysed
