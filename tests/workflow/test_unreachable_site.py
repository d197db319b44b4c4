"""One site that cannot be reached: the others are analysed, the run fails by name, and the next start goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Ended, Project, checksums, plain_dataset, read_json, remove_tree, small_head, t1w


def take_away(site: Path) -> None:
    """Have a dataset that cannot be reached."""
    (site / ".git").rename(site / ".away")


def bring_back(site: Path) -> None:
    (site / ".away").rename(site / ".git")


def test_one_unreachable_site_does_not_stop_the_others(project: Project, demo_copy: Path) -> None:
    for site in ("SiteA", "SiteB"):
        take_away(demo_copy / site)
    project.fails(dataset={"source": demo_copy, "get_attempts": 1}, tool="bet").says(
        "SiteA, SiteB: cannot be reached: "
    )
    assert not (project.results / "index/dataset.json").exists(), "without any site that is an error of the source"
    bring_back(demo_copy / "SiteA")

    ended = project.fails(dataset={"source": demo_copy, "get_attempts": 2, "get_backoff_s": 0.1}, tool="bet")
    (line,) = ended.lines("of the sub-datasets asked for cannot be reached")
    assert "'SiteB': " in line
    ended.says("failed  SiteB: cannot be reached: ")
    assert "2 of 2 participants done, 0 failed" in ended.output
    page = project.page("report")
    assert "SiteB could not be reached" in page
    assert 'class="verdict good"' not in page
    assert "'SiteB'\tcannot be reached: " in (project.results / "index/skipped.tsv").read_text()
    assert not (project.results / "index/sites.json").exists()
    made = checksums(project.derivatives / "SiteA/sub-0099002")
    records = project.records()
    times = [record.stat().st_mtime_ns for record in records]

    project.fails("ready")  # what a campaign asks for first

    bring_back(demo_copy / "SiteB")
    again = project.succeeds("participants", "results/index/sites.json")
    again.says("installing 1 of 2 sub-datasets: SiteB")
    assert not again.lines("cloning /")
    assert [name.partition("/")[0] for name in again.analysed] == ["SiteB"] * 2
    assert [record.stat().st_mtime_ns for record in records] == times
    assert checksums(project.derivatives / "SiteA/sub-0099002") == made
    assert "unreachable" not in read_json(project.results / "index/sites.json")


def test_a_participant_who_is_a_sub_dataset_that_is_away_fails_only_who_asks_for_it(project: Project) -> None:
    from datalad.api import Dataset as Repository

    source = Repository(project.folder / "source").create(result_renderer="disabled")
    for path in ("sub-01", "sub-02/ses-2", "sub-03"):
        source.create(path, result_renderer="disabled")
    images = (t1w("01"), t1w("02"), "sub-02/ses-2/anat/sub-02_ses-2_T1w.nii.gz", t1w("03"))
    plain_dataset(source.pathobj, {image: small_head() for image in images})
    source.save(recursive=True, result_renderer="disabled")
    for path in ("sub-02/ses-2", "sub-03"):
        take_away(source.pathobj / path)

    def run(*participants: str) -> Ended:
        dataset = {"source": source.path, "participants": participants, "get_attempts": 1}
        return project.snakemake(dataset=dataset, tool="noop")

    run("01").succeeded()
    run("01").says("Nothing to be done")
    assert (project.results / "index/dataset.json").exists(), "nothing need make it again"
    (line,) = run("01", "99").failed().lines("has no sub-99")
    assert "it has 3: 01, 02, 03" in line
    run("02").failed().says("failed  sub-02/ses-2: cannot be reached: ")
    bring_back(source.pathobj / "sub-02/ses-2")
    assert run("02").succeeded().analysed == ["sub-02"]


@pytest.mark.nightly
def test_clone_that_was_lost_fails_only_those_whose_site_is_away(project: Project, demo_copy: Path) -> None:
    project.succeeds("results/index/images.tsv", dataset={"source": demo_copy, "get_attempts": 1}, tool="bet")
    (clone,) = (path for path in project.folder.glob("neurotier-*/datasets/*") if path.is_dir())
    remove_tree(clone)
    take_away(demo_copy / "SiteB")
    ended = project.fails()
    assert "2 of 4 participants done, 2 failed" in ended.output, ended.output
    for participant in ("sub-0099101", "sub-0099102"):
        (line,) = ended.lines(f"failed  SiteB/{participant}: ")
        assert "SiteB: cannot be reached" in line
    bring_back(demo_copy / "SiteB")
    again = project.succeeds()
    assert not [name for name in again.analysed if name.startswith("SiteA")]
