"""Derivatives as DataLad datasets: saved after the jobs, made again in a clone, and taken up after a kill."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from container_images import Engine, make_tiny
from support import (
    ENVIRONMENT,
    IDENTITY,
    JOB_ENVIRONMENT,
    STAND_INS,
    Ended,
    Project,
    bids_errors,
    checksums,
    committed,
    git,
    plain_dataset,
    read_json,
    remove_tree,
    script,
    small_head,
    t1w,
)

WITH_TOOL = {**JOB_ENVIRONMENT, "PATH": f"{STAND_INS}:{ENVIRONMENT['PATH']}"}
KILL_AT = (2, 4, 6)
"""Commits during which who saves is killed: of making a site's dataset, describing it, and saving some participants."""

KILLING_HOOK = """# Before a commit: git has its lock, and has staged what is saved.
echo >> "{count}"
case $(wc -l < "{count}") in {kills}) kill -9 "$(ps -o ppid= -p $PPID | tr -d ' ')" $PPID;; esac
"""


APP = """case $3 in
participant)
    mkdir -p /out/sub-$5/anat
    cat /data/sub-$5/ses-*/anat/*.nii.gz >/out/sub-$5/anat/all.bin
    echo page >/out/sub-$5.html
    echo same >/out/shared.txt
    ;;
group)
    cat /out/sub-*.html >/out/group.txt
    ;;
esac"""


def run(project: Project, *arguments: str, end: Callable[..., Ended] = Project.succeeds, **sections: object) -> Ended:
    """Analyse the demonstration with the stand-in of bet, and save its derivatives."""
    demo = {"dataset": {"source": project.folder / "demo"}, "tool": "bet", "results_dataset": True}
    return end(project, "participants", *arguments, **(demo | sections))


def command(folder: Path, *words: str, **variables: str) -> str:
    """Output of a command that must succeed."""
    environment = {**WITH_TOOL, **IDENTITY, **variables}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def history(folder: Path) -> list[str]:
    """First lines of the commits, oldest first, without the hash that one of them names."""
    return [line.split(" at ")[0] for line in git(folder, "log", "--reverse", "--format=%s").splitlines()]


def images(folder: Path) -> dict[str, str]:
    """Checksums of the files of participants."""
    return {path: sum_ for path, sum_ in checksums(folder).items() if path.startswith("sub-")}


@pytest.fixture(scope="module")
def saved(lasting: Project, demo_source: Path) -> Project:
    (lasting.folder / "demo").symlink_to(demo_source)
    git(lasting.folder, "init", "--quiet", "other")
    other = {"GIT_DIR": str(lasting.folder / "other/.git"), "GIT_WORK_TREE": str(lasting.folder / "other")}
    with pytest.MonkeyPatch.context() as patch:  # what git sets for its hooks; and DataLad needs assertions
        for variable, value in {**other, "PYTHONOPTIMIZE": "1"}.items():
            patch.setitem(ENVIRONMENT, variable, value)
        run(lasting)
    return lasting


@pytest.fixture
def clone(saved: Project, tmp_path: Path) -> Path:
    """A clone of the dataset of all sites, with that of one site and none of its images."""
    command(tmp_path, "datalad", "clone", str(saved.derivatives), "clone")
    command(tmp_path / "clone", "datalad", "get", "--no-data", "SiteA")
    return tmp_path / "clone/SiteA"


def test_a_start_by_a_hook_of_git_leaves_its_repository_alone(saved: Project, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "new")
    assert checksums(saved.folder / "other") == checksums(tmp_path / "new") != {}


def test_a_site_is_a_dataset_with_its_source(saved: Project, demo_source: Path) -> None:
    above = saved.derivatives
    commits = read_json(saved.results / "state/saved.json")
    for site in ("SiteA", "SiteB"):
        folder = above / site
        assert git(folder, "rev-parse", "HEAD") == commits[site]
        assert git(above, "rev-parse", f"HEAD:{site}") == commits[site]
        raw = git(demo_source, "rev-parse", f"HEAD:{site}")
        assert git(folder, "rev-parse", "HEAD:sourcedata/raw") == raw
        assert raw in (folder / "dataset_description.json").read_text()
        assert git(folder, "status", "--porcelain") == ""
        assert "failed" not in git(folder, "annex", "fsck")
    assert git(above, "status", "--porcelain") == ""


def test_images_are_annexed_once_and_text_is_not(saved: Project) -> None:
    folder = saved.derivatives / "SiteA"
    annexed = git(folder, "annex", "find", "--include=*").splitlines()
    assert annexed == sorted(path for path in images(folder) if path.endswith(".nii.gz"))
    assert {(folder / path).stat().st_nlink for path in annexed} == {2}  # the annex's copy is the file itself


def test_it_is_valid_bids_whose_provenance_agrees(saved: Project) -> None:
    folder = saved.derivatives / "SiteA"
    assert bids_errors(folder) == []
    (activity,) = read_json(folder / "prov/prov-neurotier_act.json")["Activities"]
    sidecars = [path for path in images(folder) if path.endswith(".json")]
    assert {read_json(folder / path)["GeneratedBy"] for path in sidecars} == {activity["Id"]}
    software = {one["Id"]: one for one in read_json(folder / "prov/prov-neurotier_soft.json")["Software"]}
    named = [(software[one]["Label"], software[one]["Version"]) for one in activity["AssociatedWith"]]
    description = read_json(folder / "dataset_description.json")["GeneratedBy"]
    assert [(one["Name"], one["Version"]) for one in description] == named
    assert "-f 0.5" in activity["Label"]
    assert "-f 0.5" in description[-1]["Description"]


def test_a_clone_gets_the_bytes(saved: Project, clone: Path) -> None:
    command(clone, "datalad", "get", "sub-0099001")
    theirs = images(saved.derivatives / "SiteA")
    here = {path: sum_ for path, sum_ in images(clone).items() if path.startswith("sub-0099001/")}
    assert here == {path: sum_ for path, sum_ in theirs.items() if path.startswith("sub-0099001/")}


def test_rerun_of_one_participant_gives_the_bytes(saved: Project, clone: Path) -> None:
    """Nothing was got before: what is there afterwards has been computed, from images that DataLad has fetched."""
    before = git(clone, "rev-parse", "HEAD")
    command(clone, "datalad", "rerun", NEUROTIER_PARTICIPANTS="sub-0099001")
    theirs = images(saved.derivatives / "SiteA")
    mine = {path: sum_ for path, sum_ in images(clone).items() if path.startswith("sub-0099001/")}
    assert len(mine) == 4
    assert mine.items() <= theirs.items()
    assert git(clone, "rev-parse", "HEAD") == before
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.nightly
def test_a_commit_of_an_earlier_version_is_rerun_where_it_is_checked_out(
    project: Project, demo_copy: Path, tmp_path: Path
) -> None:
    """With the source that is registered there: of the newer one somebody has gone."""
    (project.folder / "demo").symlink_to(demo_copy)
    run(project)
    before = images(project.derivatives / "SiteB")
    made = git(project.derivatives / "SiteB", "log", "--format=%H", "--grep=RUNCMD", "-1").strip()
    git(demo_copy / "SiteB", "rm", "-rq", "sub-0099101")
    for folder in (demo_copy / "SiteB", demo_copy):
        git(folder, "commit", "-qam", "One has left")
    dataset = {"source": project.folder / "demo", "version": git(demo_copy, "rev-parse", "HEAD").strip()}
    run(project, dataset=dataset)
    command(tmp_path, "datalad", "clone", str(project.derivatives / "SiteB"), "clone")
    clone = tmp_path / "clone"
    command(clone, "datalad", "get", "--no-data", "sourcedata/raw")
    git(clone, "checkout", "-q", made)
    git(clone, "submodule", "update")
    command(clone, "datalad", "rerun", made)
    assert images(clone) == before
    assert git(clone, "status", "--porcelain") == ""


def test_what_is_made_again_with_the_same_bytes_is_no_commit(saved: Project) -> None:
    before = git(saved.derivatives, "rev-parse", "HEAD")
    ended = run(saved)
    assert "Nothing to be done" in ended.output
    folder = saved.derivatives / "SiteB"
    next(folder.glob("sub-0099101/*/anat/*_mask.nii.gz")).unlink()
    ended = run(saved)
    assert ended.analysed == ["SiteB/sub-0099101"]
    assert git(saved.derivatives, "rev-parse", "HEAD") == before
    for each in (folder, folder.parent):
        assert git(each, "status", "--porcelain") == ""


@pytest.mark.nightly("long")
def test_a_killed_save_is_taken_up(saved: Project, tmp_path: Path, demo_source: Path) -> None:
    count = tmp_path / "commits"
    kills = KILLING_HOOK.format(count=count, kills="|".join(map(str, KILL_AT)))
    hook = script(tmp_path / "hooks/pre-commit", kills)
    given = ["GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", f"GIT_CONFIG_VALUE_0={hook.parent}"]
    project = Project.at(tmp_path / "project", lambda: ["env", *given])  # what a user sets there holds
    (project.folder / "demo").symlink_to(demo_source)
    for _ in KILL_AT:  # who saves while jobs go on may be killed, and the run goes on
        run(project, end=Project.snakemake)
    for clone in project.folder.glob("neurotier-*/datasets/[!.]*"):  # as after a reboot, if it was in memory
        remove_tree(clone)
    assert not run(project, end=Project.snakemake).succeeded().analysed
    assert len(count.read_text()) > max(KILL_AT)
    for folder in (".", "SiteA", "SiteB"):
        derivatives = project.derivatives / folder
        assert sorted(history(derivatives)) == sorted(history(saved.derivatives / folder))
        assert not list((derivatives / ".git").rglob("*.lock"))
        assert git(derivatives, "status", "--porcelain") == ""
        assert "failed" not in git(derivatives, "annex", "fsck")
    assert images(project.derivatives / "SiteA") == images(saved.derivatives / "SiteA")


def test_a_plain_folder_cannot_be_a_source(tmp_path: Path) -> None:
    project = Project.at(tmp_path / "project")
    plain_dataset(project.folder / "demo", {t1w("01"): small_head()})
    ended = run(project, end=Project.fails)
    (line,) = {line for line in ended.lines("neurotier: ") if "results_dataset" in line}
    assert "plain folder" in line
    assert "set results_dataset: false" in line
    remove_tree(project.folder)


def test_a_group_level_says_which_caches_it_has_read(tmp_path: Path, demo_source: Path, engine: Engine) -> None:
    """Contents that are placed anew are no reason to analyse participants again, but the group level reads them."""
    app = """case $3 in
participant) cat /flow/template >/out/sub-$5.txt ;;
group) cat /flow/template >/out/group.txt ;;
esac"""
    image = make_tiny(engine, tmp_path, app)
    project = Project.at(tmp_path / "project")
    (project.folder / "demo").symlink_to(demo_source)
    template = project.folder / "flow/template"
    template.parent.mkdir()
    caches = {"flow": {"source": "flow", "inside": "/flow"}}
    whole = {"source": project.folder / "demo", "sites": ["SiteB"]}
    sections: dict[str, Any] = {"dataset": whole, "app": {"image": image, "name": "tiny", "caches": caches}}
    read = set()
    for text in ("early", "late"):
        template.write_text(text)
        run(project, "--sdm", "apptainer", "--forcerun", "place_caches", **sections)
        assert (project.derivatives / "SiteB/group.txt").read_text() == text
        folder = read_json(project.results / "index/caches.json")["flow"]["sha256"]
        noted = map(read_json, (project.derivatives / "SiteB/code/neurotier").glob("*.json"))
        read.add(f"sha256:{folder}")
        assert {how["caches"]["flow"] for how in noted if "group" in how} == read


@pytest.mark.nightly("long")
def test_an_app_s_derivatives_are_made_again(tmp_path: Path, demo_source: Path, engine: Engine) -> None:
    """Twice: the group level replaces the folder of a site, whose history stays. What the app reads is elsewhere."""
    image = make_tiny(engine, tmp_path, APP)
    project = Project.at(tmp_path / "project")
    (project.folder / "demo").symlink_to(demo_source)
    (project.folder / "flow").mkdir()
    (project.folder / "flow/template").write_text("template")
    caches = {"flow": {"source": "flow", "inside": "/flow"}}
    app: dict[str, Any] = {"app": {"image": image, "name": "tiny", "caches": caches}}
    whole = {"source": project.folder / "demo", "sites": ["SiteA"]}
    part = whole | {"participants": ["0099001"]}
    for dataset in (part, whole):
        run(project, "--sdm", "apptainer", dataset=dataset, **app)
    folder = project.derivatives / "SiteA"
    assert git(folder, "status", "--porcelain") == ""
    lines = history(folder)
    assert lines[:2] == ["[DATALAD] new dataset", "Describe the derivatives, and register their source"]
    assert [line for line in lines if "RUNCMD" in line and "sub-0099001" in line] == lines[2:3]
    assert not list(folder.parent.glob(".*.aside"))
    command(tmp_path, "datalad", "clone", str(folder), "clone")
    (made,) = git(folder, "log", "--format=%H", "--grep", "RUNCMD.*sub-0099001").splitlines()
    found = {"NEUROTIER_CACHE_flow": str(project.folder / "flow")}
    command(tmp_path / "clone", "datalad", "rerun", made, **found)
    for name in ("sub-0099001/anat/all.bin", "sub-0099001.html"):
        assert (tmp_path / "clone" / name).read_bytes() == (folder / name).read_bytes()
    (group,) = git(folder, "log", "--format=%H", "--grep", "RUNCMD.*Group level", "--max-count=1").splitlines()
    assert git(folder, "show", "--format=", "--name-only", group) == "group.txt"
    (tmp_path / "clone/group.txt").write_text("not what the group level makes\n")
    git(tmp_path / "clone", "commit", "--quiet", "--all", "--message", "wrong")
    command(tmp_path / "clone", "datalad", "rerun", group, **found)
    assert (tmp_path / "clone/group.txt").read_text().split() == ["page"] * 3
    assert git(tmp_path / "clone", "rev-parse", "HEAD^{tree}") == git(folder, "rev-parse", "HEAD^{tree}")


def datalad_dataset(folder: Path, contents: dict[str, Any]) -> Path:
    """A dataset without sites whose images are annexed."""
    plain_dataset(folder, contents)
    (folder / "README").write_text("Two heads, and one that is none.\n")
    return committed(folder, annexed=True)


BOTH = ["[DATALAD RUNCMD] bet of sub-01, sub-02"]
APART = ["[DATALAD RUNCMD] bet of sub-01", "[DATALAD RUNCMD] bet of sub-02"]


@pytest.mark.nightly
def test_switched_on_later_while_somebody_fails(tmp_path: Path) -> None:
    """Who was done before is saved with the options of then, without references; what is lost is made again."""
    fonts = f"MPLCONFIGDIR={matplotlib.get_cachedir()}"  # or the report of the run that fails would look for fonts
    project = Project.at(tmp_path / "project", lambda: ["env", f"HOME={tmp_path}", fonts])  # where git knows no user
    (tmp_path / ".gitconfig").write_text("[commit]\n gpgSign = true\n[user]\n useConfigOnly = true\n")
    datalad_dataset(project.folder / "demo", {t1w("01"): small_head(), t1w("02"): small_head(1), t1w("03"): b"none"})
    two = {"source": project.folder / "demo", "participants": ["01", "02"]}
    ended = run(project, dataset=two, results_dataset=False)
    folder = project.derivatives
    assert not (folder / ".git").exists()
    (folder / ".gitattributes").write_text("*.svg diff=svg\n")  # as an app may
    ended = run(project, end=Project.fails)
    assert ended.analysed == ["sub-03"]
    saved_at = git(folder, "rev-parse", "HEAD")
    attributes = git(folder, "show", "HEAD:.gitattributes").splitlines()
    assert attributes[0] == "*.svg diff=svg"
    assert "**/.git* annex.largefiles=nothing" in attributes
    assert sorted(history(folder)[2:]) == BOTH
    assert git(folder, "log", "-1", "--format=%an") == "neurotier"
    assert git(folder, "status", "--porcelain") == ""
    command(tmp_path, "datalad", "clone", str(folder), "clone")
    for made in git(folder, "log", "--format=%H", "--max-count=1").splitlines():
        command(tmp_path / "clone", "datalad", "rerun", made)
    assert images(tmp_path / "clone") == images(folder)

    next(folder.glob("sub-01/anat/*_mask.nii.gz")).unlink()
    remove_tree(folder / ".git")  # its history with it
    ended = run(project, dataset=two)
    assert sorted(line for line in history(folder) if "RUNCMD" in line) == APART, "not made alike"
    assert git(folder, "rev-parse", "HEAD") != saved_at
    assert git(folder, "status", "--porcelain") == ""
    assert read_json(folder / "sub-01/anat/sub-01_desc-brain_mask.json").keys() >= {"GeneratedBy"}
