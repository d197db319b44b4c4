"""Bad input gives one clear line and an exit code, and loses nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import missing
from devices import loop_device
from support import (
    PATIENCE_S,
    STAND_INS,
    Project,
    checksums,
    git,
    numbered,
    plain_dataset,
    read_json,
    script,
    sha256,
    sleeping,
    small_head,
    system,
    t1w,
    wait_for,
)


def expect(project: Project, line: str, *arguments: str, **sections: Any) -> str:
    """Run; the exit code is not 0, a line says why, no trace is shown, nothing is left over. Returns the output."""
    ended = project.fails(*arguments, **sections)
    ended.says(line)
    assert project.leftovers() == []
    return ended.output


# The source


def test_missing_source(project: Project) -> None:
    output = expect(project, "dataset.source '/nowhere/at all': there is no such folder", dataset="/nowhere/at all")
    assert "Job stats" not in output
    assert not project.results.exists()


@pytest.mark.nightly
@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_unreachable_source_is_tried_again(project: Project, host: str) -> None:
    dataset = {"source": f"http://{host}/corr", "get_attempts": 2, "get_backoff_s": 0.1}
    assert "attempt 1 of 2 failed" in expect(project, "cannot be cloned", dataset=dataset)


# Images: the participant fails, the others do not


BROKEN: dict[str, tuple[np.ndarray | bytes, str]] = {
    "nobytes": (b"", "the image file is empty (0 bytes)"),
    "zero": (np.zeros((20, 20, 20)), "every voxel is 0: there is no head in it"),
}


def test_broken_images_are_reported_and_once_mended_analysed(project: Project) -> None:
    project.heads("good", **{label: content for label, (content, _) in BROKEN.items()})
    began_s = time.time()
    project.fails(tool="bet")
    assert min(file.stat().st_mtime for file in project.results.rglob("*") if file.is_file()) > began_s - 1
    project.succeeds("--report", "report.zip", cores=0)
    assert (project.folder / "report.zip").stat().st_size > 100_000
    assert all(reason.split("(")[0].strip() in project.page("report") for _, reason in BROKEN.values())
    assert project.columns("participant", "group/group.tsv") == ["sub-good"]
    assert read_json(project.derivatives / "dataset_description.json")["Name"] == "Brain extraction"
    project.heads(*BROKEN)
    project.succeeds(dataset={"source": "bids", "participants": ["good", *BROKEN]}, tool="bet")
    assert len(project.table("group/group.tsv")) == len(BROKEN) + 1
    assert 'class="verdict good"' in project.page("report")


def test_content_that_is_nowhere(project: Project, demo_copy: Path) -> None:
    image = "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1_T1w.nii.gz"
    git(demo_copy / "SiteA", "annex", "drop", "--force", image.removeprefix("SiteA/"))
    output = expect(
        project,
        f"{image}: git-annex knows of no copy of its content",
        dataset=demo_copy,
        tool="noop",
    )
    assert "3 of 4 participants done, 1 failed" in output


def test_a_clone_that_was_lost_and_made_again_of_another_version_is_not_mixed_in(
    project: Project, demo_copy: Path
) -> None:
    """Whoever had it cloned again: this run's first start, or other results on the tier."""
    image = "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1_T1w.nii.gz"
    project.succeeds("participants", dataset={"source": demo_copy, "sites": ["SiteA"]}, tool="noop")
    lost, kept = project.records()
    lost.unlink()
    (clones,) = project.folder.glob("neurotier-*/datasets")
    shutil.move(clones, project.folder / "away")
    (demo_copy / image).unlink()
    (demo_copy / image).write_bytes((demo_copy / image.replace("99001", "99002")).read_bytes())
    for folder in (demo_copy / "SiteA", demo_copy):
        git(folder, "add", ".")
        git(folder, "commit", "-m", "another image")
    for _ in range(2):
        expect(project, "was lost from its tier, and the source has changed since it was indexed", "participants")
    assert project.records() == [kept]
    assert project.succeeds("participants", "--forcerun", "clone_dataset").analysed == ["SiteA/sub-0099001"]
    assert project.records() == [lost, kept]


def test_a_study_that_was_moved_goes_on(project: Project, demo_source: Path) -> None:
    dataset = {"source": demo_source, "sites": ["SiteA"]}
    project.succeeds("participants", dataset=dataset, tool="noop")
    project.records()[0].unlink()
    moved = Project(project.folder.rename(project.folder.with_name("moved")))
    assert moved.succeeds("participants", dataset=dataset, tool="noop").analysed == ["SiteA/sub-0099001"]


# Configuration


def test_configuration_that_is_wrong(project: Project) -> None:
    line = "config key dataset.sorce: unknown key; did you mean 'source'?"
    output = expect(project, line, dataset={"sorce": "x"})
    assert output.splitlines()[1:] == [f"neurotier: {line}"]  # the first names the profile
    assert not project.results.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "results=mine", "all"], "--config: Config entries have to be"),
        (["--dry-run", "--config", "dataset.source=x"], "Write --config 'dataset={source: X}'"),
        (["--config", "placement={work:tmpfs}"], "config key placement.work:tmpfs: unknown key; write a space after"),
        (["--configfile", "mine.yaml"], "--configfile: No such file or directory: 'mine.yaml'; correct the path"),
        (
            ["--configfile", "dated/own.yaml", "--directory", "dated"],
            "config key tiers: nothing is declared; is config",
        ),
        (["--cores", "0"], "--cores: nothing runs on 0 cores; give at least 1"),
        (["published"], "target published: there is nothing to replay; add --config published=PATH"),
        (["bigbrain", "--config", "bigbrain={source: mine.nii}"], "mine.nii: no such file or folder"),
        (["--workflow-profile", "dated"], "a profile's config: 2024-01-01 was read as a date; put it in quotes"),
    ],
)
def test_a_trace_of_snakemake_s_is_a_line(project: Project, arguments: list[str], said: str) -> None:
    """Of what it raises itself, and of what functions of rules refuse."""
    dated = project.folder / "dated/profile.yaml"
    dated.parent.mkdir()
    dated.write_text("cores: 1\nlogger: neurotier\nconfig:\n  dataset:\n    source: nowhere\n    version: 2024-01-01\n")
    dated.with_name("own.yaml").write_text("results: mine\n")
    (_, line) = project.fails(*arguments).output.splitlines()
    assert line.startswith("neurotier: ")
    assert said in line


def test_missing_cores(project: Project) -> None:
    (_, line) = project.fails("--config", "dataset={source: bids}", cores=0).output.splitlines()
    assert "cores have to be specified" in line


# Tiers

ON_TMPFS = ("--workflow-profile", "profiles/tmpfs")


def test_tier_path_that_is_missing(project: Project) -> None:
    tiers = {"pmem": {"path": "/nowhere/pmem"}}
    line = "tier 'pmem': its path /nowhere/pmem is not an existing folder"
    expect(project, line, "--workflow-profile", "profiles/pmem", tiers=tiers)
    project.succeeds("--dry-run", "--workflow-profile", "profiles/pmem").says(f"a run would be refused: {line}")
    assert not project.results.exists()


def test_tier_that_is_read_only(project: Project, mount_tmpfs: Callable[..., Path]) -> None:
    folder = mount_tmpfs(project.folder / "fast", "size=1m,ro")
    expect(project, "is mounted read-only", *ON_TMPFS, tiers={"tmpfs": folder})


def test_tier_that_is_too_small(project: Project, mount_tmpfs: Callable[..., Path]) -> None:
    folder = mount_tmpfs(project.folder / "fast", "size=1m")
    plain_dataset(project.folder / "bids", {t1w("01"): np.random.default_rng(0).normal(size=(90, 90, 90))})
    line = "sub-01: tier 'tmpfs' has too little room: 1 MiB and inodes for"
    expect(project, line, *ON_TMPFS, tiers={"tmpfs": folder}, tool="noop")
    assert list(folder.iterdir()) == []


def test_tier_that_becomes_read_only(project: Project, mount_tmpfs: Callable[..., Path], tmp_path: Path) -> None:
    """As the kernel makes one whose device fails, while a tool that heeds no errors is at work."""
    folder = mount_tmpfs(project.folder / "fast", "size=6m")
    script(tmp_path / "bet", f"mount -o remount,ro {folder}")
    project.heads("01")
    ended = project.fails("participants", *ON_TMPFS, path=tmp_path, tiers={"tmpfs": folder}, tool="bet")
    ended.says(f"failed  sub-01: tier 'tmpfs' became read-only, at {folder}")
    assert not ended.lines("cannot remove"), ended.output
    system("mount", "-o", "remount,rw", folder)
    project.succeeds("participants", *ON_TMPFS)
    assert not list(folder.iterdir())


@pytest.mark.nightly
def test_tier_that_two_fill_together(project: Project, mount_tmpfs: Callable[..., Path], tmp_path: Path) -> None:
    """Each has room alone, so that each is done in the end, and the times say nothing of the tier."""
    fill = "head -c 40M /dev/zero >scratch || { rm scratch; exit 1; }; sleep 2; rm scratch"
    script(tmp_path / "bet", f'{fill}; exec {STAND_INS}/bet "$@"')
    project.heads("01", "02", "03")
    tiers = {"tmpfs": mount_tmpfs(project.folder / "fast", "size=60m")}
    project.succeeds(*ON_TMPFS, path=tmp_path, tiers=tiers, tool="bet").says("is tried once more")
    run = project.only_run
    assert run["participants"] == "3"
    assert "analysed again after a kill or full tier" in run["valid"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("role", "said"),
    [("results", ["Error: neurotier: ", "Read-only file system"]), ("work", ["tier 'failing' became read-only, at "])],
)
def test_tier_whose_device_fails(project: Project, tmp_path: Path, role: str, said: list[str]) -> None:
    """The kernel makes it read-only; of results, Snakemake cannot remove what it would write again."""
    try:
        with loop_device(48) as folder:
            system("mount", "-o", "remount,errors=remount-ro", folder)
            device = Path(system("findmnt", "-no", "SOURCE", folder).strip()).name
            script(tmp_path / "bet", f"echo test >/sys/fs/ext4/{device}/trigger_fs_error")
            project.heads("01")
            tiers = {"failing": folder}
            ended = project.fails("participants", path=tmp_path, tiers=tiers, placement={role: "failing"}, tool="bet")
            assert all(map(ended.lines, said)), ended.output
    except (OSError, subprocess.CalledProcessError) as error:
        missing(f"a loop device with ext4 needs root and e2fsprogs ({error})")


def test_results_tier_that_becomes_full(project: Project, mount_tmpfs: Callable[..., Path]) -> None:
    """Derivatives take 1.5 MB: there is room for those of three, one after the other, and not for a further copy."""
    folder = mount_tmpfs(project.folder / "small", "size=6000k")
    noise = np.random.default_rng(0).integers(100, 999, (106, 106, 106)).astype(np.int16)
    project.heads(**dict.fromkeys(numbered(5), noise))
    sections = {"tiers": {"small": folder}, "placement": {"results": "small"}}
    ended = project.fails(cores=1, **sections, tool="bet")
    said = ended.lines("No space left on device") + ended.lines("became full")
    assert said, ended.output
    assert not list(folder.glob("**/.*.partial"))
    made = [sorted(one.rglob("*.nii.gz")) for one in folder.glob("results/derivatives/sub-*")]
    assert len(made) == 3
    assert len({tuple(map(sha256, images)) for images in made}) == 1, "half of it has its final name"


# Tool, lock, names


@pytest.mark.parametrize("targets", [("probe", "participants"), ("advise",)])
def test_programs_that_are_missing_are_said_before_the_first_job(
    project: Project, tmp_path: Path, targets: tuple[str, ...]
) -> None:
    project.heads("01")
    for tool in Path("/usr/bin").iterdir():
        if tool.name != "fio":
            (tmp_path / tool.name).symlink_to(tool)
    path = f"PATH={Path(sys.executable).parent}:{tmp_path}"
    ended = project.ended(["env", path, *project.command(*targets, tool="bet")]).failed()
    ended.says(
        "target probe: fio is not on PATH; install it (Debian, Ubuntu: apt",
        "tool 'bet': bet is not on PATH; install or load it",
    )
    assert not ended.lines("Probing tier")
    assert not (project.results / "index/dataset.json").exists()


def test_two_runs_of_one_results_folder(project: Project) -> None:
    project.heads("01")
    first = project.start("participants", tool=sleeping(40))
    try:
        wait_for(lambda: list(project.folder.glob("neurotier-*/work/*/sub-01")), first)
        second = project.fails("participants")
        assert len(second.lines("another run is using this results folder")) == 1, second.output
    finally:
        first.terminate()
        first.wait(timeout=PATIENCE_S)
    assert project.leftovers() == []


def test_results_on_a_file_system_without_locks(project: Project) -> None:
    project.heads("01")
    injected = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=ENOLCK"]
    ended = project.ended([*injected, *project.command("participants", tool="noop")]).failed()
    ended.says("results: its file system cannot keep two runs apart (flock: No locks available); choose a folder")


def test_names_and_paths_that_a_shell_would_read(project: Project) -> None:
    """Paths are those of source, tier and results; names are of no BIDS file, and so are skipped."""
    odd = project.folder / "a b'c\"$(touch pwned)"
    odd.mkdir()
    bad = [
        "sub-01/anat/sub-01_acq-$(touch pwned)_T1w.nii.gz",
        "sub-01/anat/sub-01_acq-`id`_T1w.nii.gz",
        "sub-01/anat/sub-01_acq-a b_T1w.nii.gz",
        "sub-01/anat/sub-01_acq-it's\"_T1w.nii.gz",
        "sub-01/anat/sub-01_acq-new\nline_T1w.nii.gz",
        "sub-01/anat/sub-01_acq-.._T1w.nii.gz",
        "sub-02/anat/sub-03_T1w.nii.gz",
    ]
    plain_dataset(odd / "bids", dict.fromkeys([t1w("01"), *bad], small_head()))
    there = replace(project, results_name="a b'c\"/res;ults")
    there.succeeds(dataset=odd / "bids", tool="bet", results=there.results_name)
    assert len(checksums(there.derivatives / "sub-01")) == 4
    assert len(there.table("index/images.tsv")) == 1
    assert len(there.table("index/skipped.tsv")) == len(bad) + 1, "sub-02 has no T1w image of its own"
    assert not list(project.folder.rglob("pwned"))


def test_braces_in_a_version_are_git_s(project: Project, demo_source: Path) -> None:
    project.succeeds("results/index/dataset.json", dataset={"source": demo_source, "version": "HEAD@{0}"}, tool="noop")
