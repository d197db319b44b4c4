"""Derivatives as DataLad datasets: saved after the jobs, made again in a clone, and taken up after a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest
from container_images import Engine, make_tiny
from support import (
    ENVIRONMENT,
    Ended,
    Project,
    bids_errors,
    checksums,
    committed,
    datalad,
    git,
    read_json,
    remove_tree,
    script,
)

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


def history(folder: Path) -> list[str]:
    """First lines of the commits, oldest first, without the hash that one of them names."""
    return [line.split(" at ")[0] for line in git(folder, "log", "--reverse", "--format=%s").splitlines()]


def is_clean(folder: Path) -> bool:
    return git(folder, "status", "--porcelain") == ""


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
        assert is_clean(folder)
        assert "failed" not in git(folder, "annex", "fsck")
    assert is_clean(above)


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


def test_a_clone_gets_the_bytes_and_makes_them_again(saved: Project, tmp_path: Path) -> None:
    """Of one participant by DataLad; of another by a rerun, which computes them from images that DataLad fetches."""
    datalad(tmp_path, "clone", saved.derivatives, "clone")
    datalad(tmp_path / "clone", "get", "--no-data", "SiteA")
    clone, theirs = tmp_path / "clone/SiteA", images(saved.derivatives / "SiteA")
    before = git(clone, "rev-parse", "HEAD")
    datalad(clone, "get", "sub-0099002")
    lacking = images(clone).items() ^ theirs.items()
    assert {path.partition("/")[0] for path, _ in lacking} == {"sub-0099001"}
    datalad(clone, "rerun", NEUROTIER_PARTICIPANTS="sub-0099001")
    assert images(clone) == theirs
    assert git(clone, "rev-parse", "HEAD") == before
    assert is_clean(clone)


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
    datalad(tmp_path, "clone", project.derivatives / "SiteB", "clone")
    clone = tmp_path / "clone"
    datalad(clone, "get", "--no-data", "sourcedata/raw")
    git(clone, "checkout", "-q", made)
    git(clone, "submodule", "update")
    datalad(clone, "rerun", made)
    assert images(clone) == before
    assert is_clean(clone)


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
        assert is_clean(each)


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
        assert is_clean(derivatives)
        assert "failed" not in git(derivatives, "annex", "fsck")
    assert images(project.derivatives / "SiteA") == images(saved.derivatives / "SiteA")


def test_a_plain_folder_cannot_be_a_source(project: Project) -> None:
    project.heads("01")
    ended = run(project, end=Project.fails, dataset="bids")
    (line,) = {line for line in ended.lines("neurotier: ") if "results_dataset" in line}
    assert "plain folder" in line
    assert "set results_dataset: false" in line


def test_a_group_level_says_which_caches_it_has_read(
    project: Project, tmp_path: Path, demo_source: Path, engine: Engine
) -> None:
    """Contents that are placed anew are no reason to analyse participants again, but the group level reads them."""
    app = """case $3 in
participant) cat /flow/template >/out/sub-$5.txt ;;
group) cat /flow/template >/out/group.txt ;;
esac"""
    caches = {"flow": {"source": "flow", "inside": "/flow"}}
    tiny = {"image": make_tiny(engine, tmp_path, app), "name": "tiny", "caches": caches}
    template = project.folder / "flow/template"
    template.parent.mkdir()
    dataset, read = {"source": demo_source, "sites": ["SiteB"]}, set()
    for text in ("early", "late"):
        template.write_text(text)
        run(project, "--sdm", "apptainer", "--forcerun", "place_caches", dataset=dataset, app=tiny)
        assert (project.derivatives / "SiteB/group.txt").read_text() == text
        folder = read_json(project.results / "index/caches.json")["flow"]["sha256"]
        noted = map(read_json, (project.derivatives / "SiteB/code/neurotier").glob("*.json"))
        read.add(f"sha256:{folder}")
        assert {how["caches"]["flow"] for how in noted if "group" in how} == read


@pytest.mark.nightly("long")
def test_an_app_s_derivatives_are_made_again(
    project: Project, tmp_path: Path, demo_source: Path, engine: Engine
) -> None:
    """Twice: the group level replaces the folder of a site, whose history stays. What the app reads is elsewhere."""
    (project.folder / "flow").mkdir()
    (project.folder / "flow/template").write_text("template")
    caches = {"flow": {"source": "flow", "inside": "/flow"}}
    app = {"image": make_tiny(engine, tmp_path, APP), "name": "tiny", "caches": caches}
    for participants in (["0099001"], []):
        dataset = {"source": demo_source, "sites": ["SiteA"], "participants": participants}
        run(project, "--sdm", "apptainer", dataset=dataset, app=app)
    folder = project.derivatives / "SiteA"
    assert is_clean(folder)
    lines = history(folder)
    assert lines[:2] == ["[DATALAD] new dataset", "Describe the derivatives, and register their source"]
    assert [line for line in lines if "RUNCMD" in line and "sub-0099001" in line] == lines[2:3]
    assert not list(folder.parent.glob(".*.aside"))
    datalad(tmp_path, "clone", folder, "clone")
    clone, flow = tmp_path / "clone", str(project.folder / "flow")
    (made,) = git(folder, "log", "--format=%H", "--grep", "RUNCMD.*sub-0099001").splitlines()
    datalad(clone, "rerun", made, NEUROTIER_CACHE_flow=flow)
    for name in ("sub-0099001/anat/all.bin", "sub-0099001.html"):
        assert (clone / name).read_bytes() == (folder / name).read_bytes()
    group = git(folder, "log", "--format=%H", "--grep", "RUNCMD.*Group level", "--max-count=1")
    assert git(folder, "show", "--format=", "--name-only", group) == "group.txt"
    (clone / "group.txt").write_text("not what the group level makes\n")
    git(clone, "commit", "--quiet", "--all", "--message", "wrong")
    datalad(clone, "rerun", group, NEUROTIER_CACHE_flow=flow)
    assert (clone / "group.txt").read_text().split() == ["page"] * 3
    assert git(clone, "rev-parse", "HEAD^{tree}") == git(folder, "rev-parse", "HEAD^{tree}")


BOTH = ["[DATALAD RUNCMD] bet of sub-01, sub-02"]
APART = ["[DATALAD RUNCMD] bet of sub-01", "[DATALAD RUNCMD] bet of sub-02"]


@pytest.mark.nightly
def test_switched_on_later_while_somebody_fails(tmp_path: Path) -> None:
    """Who was done before is saved with the options of then, without references; what is lost is made again."""
    fonts = f"MPLCONFIGDIR={matplotlib.get_cachedir()}"  # or the report of the run that fails would look for fonts
    project = Project.at(tmp_path / "project", lambda: ["env", f"HOME={tmp_path}", fonts])  # where git knows no user
    (tmp_path / ".gitconfig").write_text("[commit]\n gpgSign = true\n[user]\n useConfigOnly = true\n")
    demo = project.heads("01", "02", **{"03": b"none"}).rename(project.folder / "demo")
    (demo / "README").write_text("Two heads, and one that is none.\n")
    two = {"source": committed(demo, annexed=True), "participants": ["01", "02"]}
    run(project, dataset=two, results_dataset=False)
    folder = project.derivatives
    assert not (folder / ".git").exists()
    (folder / ".gitattributes").write_text("*.svg diff=svg\n")  # as an app may
    assert run(project, end=Project.fails).analysed == ["sub-03"]
    saved_at = git(folder, "rev-parse", "HEAD")
    attributes = git(folder, "show", "HEAD:.gitattributes").splitlines()
    assert attributes[0] == "*.svg diff=svg"
    assert "**/.git* annex.largefiles=nothing" in attributes
    assert sorted(history(folder)[2:]) == BOTH
    assert git(folder, "log", "-1", "--format=%an") == "neurotier"
    assert is_clean(folder)
    datalad(tmp_path, "clone", folder, "clone")
    for made in git(folder, "log", "--format=%H", "--max-count=1").splitlines():
        datalad(tmp_path / "clone", "rerun", made)
    assert images(tmp_path / "clone") == images(folder)

    next(folder.glob("sub-01/anat/*_mask.nii.gz")).unlink()
    remove_tree(folder / ".git")  # its history with it
    run(project, dataset=two)
    assert sorted(line for line in history(folder) if "RUNCMD" in line) == APART, "not made alike"
    assert git(folder, "rev-parse", "HEAD") != saved_at
    assert is_clean(folder)
    assert read_json(folder / "sub-01/anat/sub-01_desc-brain_mask.json").keys() >= {"GeneratedBy"}
