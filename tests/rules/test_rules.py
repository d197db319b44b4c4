"""One rule at a time: each makes its files from those of the rules before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Project, read_json

PARTICIPANT = "SiteB/sub-0099102"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A working folder over the small demonstration, in which the tests below go on, rule by rule."""
    return Project.at(tmp_path_factory.mktemp("rules") / "project")


DEMO = {"demo": {"head": "simulated", "voxel_size_mm": 4.0}, "dataset": {"sites": ["SiteB"]}, "tool": "noop"}


def make(project: Project, *targets: str) -> set[str]:
    """Make files below the results folder with the small demonstration; the rules that ran."""
    ended = project.succeeds(*[f"results/{target}" for target in targets], *project.configure(**DEMO))
    return {line.split("Rule: ")[1].rstrip(")") for line in ended.lines("Finished jobid")}


def test_a_dataset_is_cloned(project: Project) -> None:
    assert make(project, "index/dataset.json") == {"make_demo_dataset", "clone_dataset"}
    dataset = read_json(project.results / "index" / "dataset.json")
    assert list(dataset["sites"]) == ["SiteB"]
    assert Path(dataset["path"]).is_dir()


def test_index_and_tool_are_made(project: Project) -> None:
    assert make(project, "index/images.tsv", "index/tool.json") == {"index_dataset", "prepare_tool"}
    rows = project.table("index/images.tsv")
    assert [row["label"] for row in rows] == ["0099101", "0099101", "0099102"]
    assert all("-s" in row["content"] and int(row["size_bytes"]) > 10_000 for row in rows)
    assert read_json(project.results / "index" / "tool.json") == {"name": "noop", "version": "1"}


def test_a_share_is_fetched_and_analysed(project: Project) -> None:
    assert make(project, "state/got/1-of-1.0") == {"fetch_images"}, "for who wants all of them first"
    assert make(project, "state/shares/1-of-1.0") == {"analyze_participants"}
    phases = [phase["phase"] for phase in project.record(PARTICIPANT)["phases"]]
    assert phases == ["start_up", "stage_in", "compute", "stage_out"]
    clone = Path(read_json(project.results / "index" / "dataset.json")["path"])
    fetched = [image.name for image in clone.glob("SiteB/sub-*/ses-*/anat/*_T1w.nii.gz") if image.exists()]
    assert "sub-0099102_ses-1_run-1_T1w.nii.gz" in fetched


def test_tables_and_derivatives_are_described(project: Project) -> None:
    described = "derivatives/SiteB/dataset_description.json"
    made = make(project, described, "profile/profile.tsv", "group/group.tsv")
    assert made == {"describe_derivatives", "require_participants", "tabulate_profile", "summarize_group"}
    description = read_json(project.results / described)
    assert description["DatasetType"] == "derivative"
    assert str(project.folder) not in json.dumps(description)
    assert len(project.table("profile/profile.tsv")) == 2 * 4
    assert project.table("group/group.tsv") == [], "there are no masks"


def test_share_that_is_not_there_is_said_so(project: Project) -> None:
    ended = project.snakemake("results/state/shares/7-of-7.0", *project.configure(**DEMO))
    assert ended.code != 0
    assert ended.lines("share 7-of-7.0: there is no such share")
