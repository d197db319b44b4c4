"""What is refused at the start: a dataset that is not there or would be written to, and programs that are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from conftest import missing
from neurotier.core.errors import ContainerError, SettingsError, SourceError, TierError, ToolError
from neurotier.core.files import write_json, write_text
from neurotier.core.places import Places
from neurotier.run.head import acquire, refuse_planted_results
from neurotier.run.plan import Plan
from neurotier.run.preconditions import OtherResults, check_programs, check_start, other_results
from neurotier.run.snakemake_internals import Command
from support import NOBODY, ROOT, plain_dataset, script, small_head, t1w

COMMAND = Command(True, False, frozenset(["all"]), frozenset(), False, reindexes=False, keep_going=True, cancel="")


def looked(
    folder: Path, dryrun: bool = False, tier: str = ".", on_cluster: bool = False, target: str = "all", **sections: Any
) -> list[str]:
    """What is said at the start of a run whose tier is a folder."""
    said, settings = list[str](), settings_at(folder / tier, **sections)
    plan = Plan(settings, Places.from_settings(settings), on_cluster)
    check_start(plan, COMMAND._replace(starts=not dryrun, is_dry_run=dryrun, targets=frozenset([target])), said.append)
    return said


def test_of_an_app_s_derivatives_that_are_replaced_only_what_describes_the_dataset_stays(tmp_path: Path) -> None:
    """FreeSurfer's surfaces beside the registered source passed for what the next app had made, in a commit of it."""
    places = Places(*[tmp_path] * 5)
    folder, stays = (
        places.derivatives / "SiteA",
        [".git/HEAD", "code/run.py", "prov/a", "sourcedata/.mine", "sourcedata/raw/b"],
    )
    for name in (*stays, "sub-1/c", "sourcedata/freesurfer/sub-1/d", "sourcedata/e", "raw/f"):
        write_text(folder / name, "text")
    mine = tmp_path / "mine"
    write_text(mine / "sub-1/g", "text")
    (places.derivatives / "SiteB").mkdir()
    (places.derivatives / "SiteB/sourcedata").symlink_to(mine)
    for site in ("SiteA", "SiteB"):
        write_json(places.record(f"{site}/sub-1"), {})
    OtherResults(places, "", by_app=True).remove()
    assert (mine / "sub-1/g").exists()
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == stays


@pytest.mark.parametrize("first", [0, 1])
def test_what_an_app_made_goes_whole_whichever_record_is_read_first(tmp_path: Path, first: int) -> None:
    """Of results into which those of a tool were copied."""
    settings = settings_at(tmp_path)
    plan = Plan(settings, Places.from_settings(settings), on_cluster=False)
    for name, made in (("sub-1", {"tool": "noop"}), ("sub-2", {"app": "x"}), ("sub-3", {}))[:: 1 - 2 * first]:
        write_json(plan.places.record(name), {"run": name})
        write_json(plan.places.runs / f"{name}.json", {"made_with": made or None})
    found = other_results(plan, plan.places, COMMAND._replace(forced=True))
    assert found
    assert found.by_app


def test_a_source_that_is_cloned_may_be_gone_and_a_folder_may_not(tmp_path: Path) -> None:
    source, known = str(tmp_path / "gone"), tmp_path / "results/index/dataset.json"
    write_json(known, {"source": source, "kind": "datalad"})
    assert looked(tmp_path, dataset={"source": source}) == []
    write_json(known, {"source": source, "kind": "folder"})
    with pytest.raises(SourceError, match="there is no such folder"):
        looked(tmp_path, dataset={"source": source})


def test_results_are_on_their_tier(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    disk = mount_tmpfs(tmp_path / "mounted", "size=1m")
    (tmp_path / "results").symlink_to(disk)
    with pytest.raises(TierError, match=rf"results: is on {disk}, and not on the tier of the results, 'disk'; "):
        looked(tmp_path)


def test_a_campaign_is_not_predicted_for_a_cluster_which_is_said_at_once(tmp_path: Path) -> None:
    campaign: dict[str, Any] = {"placements": {"disk": {}}}
    looked(tmp_path, target="advise", campaign=campaign)
    with pytest.raises(SettingsError, match="target advise: the runs of a campaign are not predicted for a cluster"):
        looked(tmp_path, target="advise", campaign=campaign, on_cluster=True)


def test_nothing_is_written_into_the_dataset(tmp_path: Path) -> None:
    bids = plain_dataset(tmp_path / "bids", {t1w("01"): small_head()})
    (tmp_path / "link").symlink_to(bids)
    look = partial(looked, tmp_path, dataset={"source": str(bids)})
    assert look() == []
    for source, tier in [(bids, "bids"), (tmp_path / "link", "bids"), (bids, "link/derivatives")]:
        with pytest.raises(
            SettingsError, match=rf"^results folder {bids}/.*results: lies in the dataset {bids}, which"
        ):
            looked(tmp_path, dataset={"source": str(source)}, tier=tier)
    with pytest.raises(SettingsError, match="results folder"):
        look(results="bids/derivatives/neurotier")
    tiers = {"data": {"path": str(bids), "kind": "block"}}
    assert look(tiers=tiers, placement={"dataset": "data"}) == []
    with pytest.raises(SettingsError, match="work folder"):
        look(tiers=tiers, placement={"dataset": "data", "work": "data"})


def test_a_dry_run_says_that_a_tier_of_a_campaign_is_missing(tmp_path: Path) -> None:
    campaign = {"placements": {"fast": {"work": "pmem"}}, "parallelism": [1], "repetitions": 1}
    tiers = {"pmem": {"path": "/nowhere", "kind": "fsdax"}}
    (line,) = looked(tmp_path, dryrun=True, tiers=tiers, campaign=campaign)
    assert "tier 'pmem': its path /nowhere is not an existing folder" in line
    assert looked(tmp_path, dryrun=True, on_cluster=True, tiers=tiers, campaign=campaign) == []  # nodes look at it


def test_results_that_another_user_makes_after_the_look_are_refused(tmp_path: Path) -> None:
    if os.getuid() != 0:
        missing("giving folders to another user needs root")
    victim, places = tmp_path / "victim", Places.from_settings(settings_at(tmp_path, results="open/study/results"))
    (victim / "journal").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    refuse_planted_results(places.results)
    places.results.mkdir(parents=True)
    places.state.symlink_to(victim)
    for path in (places.results.parent, places.results, places.state):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(TierError, match="user nobody"):
        acquire(places)
    assert [path.name for path in victim.rglob("*")] == ["journal"]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("run_gnu_parallel", "target bigbrain: parallel is not on PATH; have GNU parallel on PATH"),
        ("probe_tier", "target probe: fio is not on PATH; install it"),
        *((f"run_{target}", f"target {target}: fio is not on PATH; install it") for target in ("sweep", "daq", "ior")),
    ],
)
def test_programs_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str, line: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=f"^{line}"):
        check_programs({"draw_mosaics", rule}, settings_at(), print)
    check_programs({"draw_mosaics"}, settings_at(), print)
    for name in ("parallel", "fio"):
        script(tmp_path / name, "")
    check_programs({rule}, settings_at(), print)


def test_a_container_engine_is_looked_for_and_then_no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = settings_at(in_containers=True, tool={"name": "bet", "bet": {"image": "bet.sif"}})
    with pytest.raises(ContainerError, match="neither apptainer nor singularity is on PATH"):
        check_programs({"prepare_tool"}, settings, print)
    script(tmp_path / "singularity", "")
    check_programs({"prepare_tool"}, settings, print)


@pytest.mark.parametrize(
    ("folder", "python", "line"),
    [
        ("with space", "python3", "the path of this checkout has a space or a colon in it"),
        ("with:colon", "python3", "the path of this checkout has a space or a colon in it"),
        ("plain", "false", "make: false cannot make an environment; install Python 3.11 or later with venv"),
    ],
)
def test_make_refuses_before_anything_is_installed(tmp_path: Path, folder: str, python: str, line: str) -> None:
    checkout, files = tmp_path / folder, {"Makefile", "pyproject.toml", "requirements.lock"}
    checkout.mkdir()
    for name in files:
        shutil.copy(ROOT / name, checkout)
    made = subprocess.run(["make", "environment", f"PYTHON={python}"], cwd=checkout, capture_output=True, text=True)
    assert made.returncode
    assert line in made.stderr.splitlines()[0]
    assert {path.name for path in checkout.iterdir()} == files


def looked_for_app(folder: Path, on_cluster: bool = False, binds: Sequence[str] = (), **app: Any) -> None:
    """Look at the start of a run of an app over a folder."""
    (folder / "study").mkdir(exist_ok=True)
    dataset, app = {"source": str(folder / "study")}, {"image": "x.sif", **app}
    looked(folder, on_cluster=on_cluster, in_containers=True, app=app, dataset=dataset, containers={"binds": [*binds]})


def test_what_an_app_is_to_see_is_looked_for_first(tmp_path: Path) -> None:
    licence, filters, flow = (tmp_path / name for name in ("license.txt", "filter.json", "flow"))
    caches = {"flow": {"source": str(flow), "inside": "/flow"}}
    bind = f"{licence}:/opt/license.txt"
    with pytest.raises(ContainerError, match=r"^config key containers\.binds: .*license\.txt: does not exist; correct"):
        looked_for_app(tmp_path, binds=(bind,))
    looked_for_app(tmp_path, on_cluster=True, binds=(bind,))  # the nodes may have it
    licence.write_text("me\n")
    for inside in ("/data/license.txt", "/out/license.txt:ro"):
        with pytest.raises(SettingsError, match=r"license\.txt.*: lies in an app's dataset or output; name a place"):
            looked_for_app(tmp_path, binds=(f"{licence}:{inside}",))
    app: dict[str, Any] = {"filter_file": str(filters), "arguments": ["{filter_file}"], "caches": caches}
    look = partial(looked_for_app, tmp_path, binds=(bind,), **app)
    with pytest.raises(SettingsError, match=r"^config key app\.filter_file: .*filter\.json: no such file; correct the"):
        look()
    for text, said in [("{", "is not valid JSON: "), ("[]", "holds no filters; write "), ("\0", "is not valid JSON: ")]:
        filters.write_text(text)
        with pytest.raises(SettingsError, match=rf"^config key app\.filter_file: .*: {said}"):
            look()
    filters.write_text('{"t1w": {"session": "1"}}')
    with pytest.raises(SettingsError, match=r"^config key app\.caches\.flow\.source: .*flow: there is no such folder"):
        look()
    flow.mkdir()
    look()
