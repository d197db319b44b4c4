"""What somebody has removed or spoiled in a finished run: made again, said in a line, and nothing else is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Project, git, private_folder, remove_tree, system


def test_what_was_spoiled_is_made_again_and_contents_stay(project: Project, demo_source: Path) -> None:
    project.succeeds(dataset=demo_source, tool="bet")
    state, (clone,) = project.results / "state", project.folder.glob("neurotier-*/datasets/[!.]*")
    picture = sorted((project.results / "figures/mosaics/SiteB").glob("*.png"))[-1]
    picture.unlink()
    readme = project.derivatives / "SiteB/README"
    text = readme.read_text()
    readme.write_text("")
    own = [project.results / name for name in ("group/own.tsv", "derivatives/CHANGES", "index/own.json", "own.html")]
    for file in own:
        file.write_text("before")
    locks = [state / "lock", clone.with_name(f".{clone.name}.lock")]
    record = min((project.folder / ".snakemake/metadata").iterdir())
    for file in (*locks, state / "latest_run", record):
        file.unlink()
        file.mkdir()
    for site in ("SiteA", "SiteB"):
        (clone / site / f".git/objects/pack/pack-{40 * 'a'}.keep").touch()  # empty, as git makes it
    for name in ("index/skipped.tsv", "state/complete.json", "group/group.tsv"):  # by a clock that was wrong
        os.utime(project.results / name, (2**31, 2**31))
    contents = {site: content_of(clone / site) for site in ("SiteA", "SiteB")}
    (clone / "SiteB/.git/HEAD").write_text("")

    ended = project.succeeds()
    assert ended.analysed == []
    assert picture.exists()
    assert readme.read_text() == text
    assert f"{picture.relative_to(project.folder)} is not as it was written; it will be made again" in ended.output
    for lock in locks:
        assert lock.is_file()
        ended.says(f"{lock.relative_to(project.folder)} is a folder in place of a lock; it is made again")
    assert content_of(clone / "SiteA") == contents["SiteA"]
    assert not ended.lines("SiteA is damaged")
    ended.says("SiteB is damaged (after a power cut?), and is cloned again")
    (aside,) = clone.parent.glob(f"{clone.name}-SiteB-until-*")
    ended.says(f"SiteB is now {aside}; remove that if nothing in it is needed")
    assert content_of(aside) == contents["SiteB"]

    for file in own:
        file.write_text("what no rule makes is the user's")
    again = project.succeeds()
    assert "Nothing to be done" in again.output
    assert not again.lines("neurotier:"), again.output

    for file in (state / "outputs.json", max((state / "runs").iterdir())):
        file.unlink()
        file.mkdir()
    for file in (state / "identity", state / "source", record):
        file.write_bytes(b"\xa7\xfe no text")
    assert project.succeeds().analysed == []
    assert (state / "outputs.json").is_file()
    assert {file.read_text() for file in own} == {"what no rule makes is the user's"}


@pytest.mark.parametrize("command", ["unlock", "lock"])
def test_what_a_scratch_file_system_purges_of_a_clone_is_put_back(
    project: Project, demo_copy: Path, command: str
) -> None:
    """One by one: links of images are as old as the clone, and so are files without the link, whose content is here."""
    git(demo_copy / "SiteA", "annex", command)
    for repository in (demo_copy / "SiteA", demo_copy):
        git(repository, "commit", "--quiet", "--allow-empty", "--all", "--message", command)
    dataset = {"source": demo_copy, "sites": ["SiteA"]}
    assert len(project.succeeds("participants", dataset=dataset, tool="noop").analysed) == 2
    images = list(project.folder.glob("neurotier-*/datasets/[!.]*/SiteA/sub-*/**/*.nii.gz"))
    assert {image.is_symlink() for image in images} == {command == "lock"}
    for image in images:
        image.unlink()
    assert len(project.succeeds("participants", "--forcerun", "analyze_participants").analysed) == 2


def test_what_cannot_be_removed_is_said(project: Project, demo_source: Path, mount_tmpfs: Callable[..., Path]) -> None:
    """Else what is lost would stay so, and pass for done. A clone that nobody needs may lie on a read-only tier."""
    source = mount_tmpfs(project.folder / "source", "size=200m")
    tiers, placement = {"source": source}, {"dataset": "source"}
    dataset = {"source": demo_source, "sites": ["SiteA"]}
    project.succeeds("participants", dataset=dataset, tiers=tiers, placement=placement, tool="bet")
    system("mount", "-o", "remount,ro", source)
    project.succeeds("participants").says("Nothing to be done")
    profile = project.results / "profile"
    profile.rename(project.folder / "profile")
    mount_tmpfs(profile, "size=1m")
    shutil.copytree(project.folder / "profile", profile, dirs_exist_ok=True)
    system("mount", "-o", "remount,ro", profile)
    shutil.rmtree(min((project.derivatives / "SiteA").glob("sub-*")))
    (line,) = project.fails("participants").lines("results folder cannot be written or mended: ")
    assert ": Read-only file system; " in line


def test_records_of_a_clock_that_was_ahead_make_no_marker_of_the_future(project: Project) -> None:
    project.heads("01")
    project.succeeds("participants", tool="noop")
    for record in project.records():
        os.utime(record, (2**31, 2**31))
    (marker,) = (project.results / "state/shares").iterdir()
    marker.unlink()
    assert project.succeeds("participants").analysed == []


def content_of(site: Path) -> int:
    """The inode of the first image that is here."""
    files = (site / ".git/annex/objects").rglob("*.nii.gz")
    return min(os.stat(file).st_ino for file in files if file.is_file())


@pytest.mark.nightly
def test_what_hides_where_contents_are_goes_and_the_rest_stays(project: Project, demo_source: Path) -> None:
    """A power cut leaves files of git-annex's journal empty; its branch says what they hide."""
    project.succeeds("results/index/images.tsv", dataset={"source": demo_source, "sites": ["SiteA"]}, tool="noop")
    (site,) = project.folder.glob("neurotier-*/datasets/[!.]*/SiteA")
    git_folder = site.stat().st_ino
    for log in git(site, "ls-tree", "-r", "--name-only", "git-annex").splitlines():
        if log.endswith(".nii.gz.log"):
            journal = site / ".git/annex/journal" / log.replace("/", "_")
            journal.parent.mkdir(exist_ok=True)
            journal.touch()
    project.succeeds("participants")
    assert site.stat().st_ino == git_folder


def test_a_participant_is_missed_without_the_records_of_snakemake(project: Project) -> None:
    """By these alone it would see that what is there is of shares of other names."""
    project.heads("01", "02")
    project.succeeds("participants", tool="noop")
    lost, kept = project.records()
    lost.unlink()
    for file in (project.folder / ".snakemake/metadata").iterdir():
        file.unlink()
    written_ns = kept.stat().st_mtime_ns
    assert project.succeeds("participants").analysed == [lost.stem]
    assert project.records() == [lost, kept]
    assert kept.stat().st_mtime_ns == written_ns


@pytest.mark.nightly
def test_a_demonstration_that_its_tier_has_lost_is_made_again_for_who_is_missing(project: Project) -> None:
    """Who has not typed its path cannot correct it."""
    dataset = {"source": "demo", "sites": ["SiteB"]}
    project.succeeds("participants", dataset=dataset, tool="noop", demo={"voxel_size_mm": 4})
    remove_tree(private_folder(project.folder))
    project.succeeds("participants").says("Nothing to be done")
    lost, _ = project.records()
    lost.unlink()
    assert project.succeeds().analysed == [f"SiteB/{lost.stem}"]
    assert "demo: noop; last run" in (project.results / "report.html").read_text()  # not the folder that it has made
