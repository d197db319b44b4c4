"""One rule at a time: each makes its files from those of the rules before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from neurotier.core.places import file_of
from support import Project

PARTICIPANT = "SiteB/sub-0099102"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A working folder over the small demonstration, in which the tests below go on, rule by rule."""
    return Project.at(tmp_path_factory.mktemp("rules") / "project")


def make(project: Project, *targets: str) -> list[str]:
    """Make files below the results folder with the small demonstration; the rules that ran, in order."""
    demo = {"head": "simulated", "voxel_size_mm": 4.0}
    arguments = project.configure(demo=demo, dataset={"sites": ["SiteB"]}, tool={"name": "noop"})
    ended = project.snakemake(*[f"results/{target}" for target in targets], *arguments)
    assert ended.code == 0, ended.output
    return [line.split("Rule: ")[1].rstrip(")") for line in ended.lines("Finished jobid")]


def read(path: Path) -> dict[str, object]:
    data: dict[str, object] = json.loads(path.read_text())
    return data


def test_clone_dataset(project: Project) -> None:
    assert make(project, "index/dataset.json") == ["make_demo_dataset", "clone_dataset"]
    dataset = read(project.results / "index" / "dataset.json")
    assert list(dataset["sites"]) == ["SiteB"]  # type: ignore[call-overload]
    assert Path(str(dataset["path"])).is_dir()


def test_index_dataset(project: Project) -> None:
    assert make(project, "index/images.tsv") == ["index_dataset"]
    rows = project.table("index/images.tsv")
    assert [row["label"] for row in rows] == ["0099101", "0099101", "0099102"]
    assert all("-s" in row["content"] and int(row["size_bytes"]) > 10_000 for row in rows)


def test_prepare_tool(project: Project) -> None:
    assert make(project, "index/tool.json") == ["prepare_tool"]
    assert read(project.results / "index" / "tool.json") == {"name": "noop", "version": "1"}


def test_analyze_participants_fetches_analyses_and_is_the_share_of_all(project: Project) -> None:
    assert make(project, "state/shares/1-of-1.0") == ["analyze_participants"]
    record = read(file_of(project.results / "profile" / "records", PARTICIPANT))
    phases = record["phases"]
    assert isinstance(phases, list)
    assert [phase["phase"] for phase in phases] == ["start_up", "stage_in", "compute", "stage_out"]
    clone = Path(str(read(project.results / "index" / "dataset.json")["path"]))
    fetched = [image.name for image in clone.glob("SiteB/sub-*/ses-*/anat/*_T1w.nii.gz") if image.exists()]
    assert "sub-0099102_ses-1_run-1_T1w.nii.gz" in fetched


def test_describe_derivatives(project: Project) -> None:
    assert make(project, "derivatives/SiteB/dataset_description.json") == ["describe_derivatives"]
    description = read(project.results / "derivatives" / "SiteB" / "dataset_description.json")
    assert description["DatasetType"] == "derivative"
    assert str(project.folder) not in json.dumps(description)


def test_tabulate_profile(project: Project) -> None:
    assert make(project, "profile/profile.tsv") == ["require_participants", "tabulate_profile"]
    assert len(project.table("profile/profile.tsv")) == 2 * 4


def test_fetch_images_for_who_wants_all_of_them_first(project: Project) -> None:
    assert make(project, "state/got/1-of-1.0") == ["fetch_images"]


def test_summarize_group_is_empty_without_masks(project: Project) -> None:
    assert make(project, "group/group.tsv") == ["summarize_group"]
    assert project.table("group/group.tsv") == []


def test_share_that_is_not_there_is_said_so(project: Project) -> None:
    arguments = project.configure(
        demo={"head": "simulated", "voxel_size_mm": 4.0}, dataset={"sites": ["SiteB"]}, tool={"name": "noop"}
    )
    ended = project.snakemake("results/state/shares/7-of-7.0", *arguments)
    assert ended.code != 0
    assert ended.lines("share 7-of-7.0: there is no such share")
