"""The campaign without Snakemake: its matrix and order, the page cache, preflight, and what is kept of a run."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from configured import tier
from neurotier.core.errors import RunError, SettingsError, TierError
from neurotier.core.files import write_json, write_text
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import read_table, write_table
from neurotier.core.tiers import Tier, find_mount
from neurotier.dataset.source import Dataset
from neurotier.run import campaign as campaigns
from neurotier.run.campaign import (
    Campaign,
    PlannedRun,
    check_campaign,
    check_room,
    condition_json,
    plan_rows,
    planned_runs,
    walk,
)
from neurotier.run.jobs import dataset_json
from neurotier.storage.page_cache import prepare_cache
from pool_jobs import image, write_index
from support import script

CAMPAIGN = {"placements": {"disk": {}, "memory": {"work": "tmpfs"}}, "parallelism": [1, 2], "repetitions": 3}


def configuration(folder: Path, **campaign: Any) -> dict[str, Any]:
    tiers = {"local": tier(folder), "tmpfs": tier("/dev/shm")}
    return {"tiers": tiers, "placement": dict.fromkeys(ROLES, "local"), "campaign": {**CAMPAIGN, **campaign}}


def runs_of(base: dict[str, Any], index: str = "", elsewhere: bool = False) -> list[PlannedRun]:
    settings = Settings.from_config(base)
    places = Places.from_settings(settings)
    write_text(places.index / "images.sha256", index)
    return planned_runs(base, settings, places, elsewhere)


def planned(folder: Path, **campaign: Any) -> list[PlannedRun]:
    return runs_of(configuration(folder, **campaign))


def test_every_repetition_has_every_condition_once_in_an_order_of_its_own(tmp_path: Path) -> None:
    asked = {"cache": ["cold", "warm"], "tools": ["noop", "brainextractor"]}
    runs = planned(tmp_path, **asked)
    assert [run.position for run in runs] == list(range(1, 3 * 16 + 1))
    blocks = [[run.condition for run in runs if run.repetition == repetition] for repetition in (1, 2, 3)]
    assert all(len(set(block)) == 16 for block in blocks)
    assert [run.repetition for run in runs] == sorted(run.repetition for run in runs)
    assert blocks[0] != blocks[1] != blocks[2]
    assert runs == planned(tmp_path, **asked)
    assert [run.name for run in runs] != [run.name for run in planned(tmp_path, seed=1, **asked)]


UNSEEN = """
results: elsewhere
report: {mosaics: 3}
published: /x
dataset: {get_attempts: 9, validation: report, drop: true}
shares: {participants: 4}
validity: {others_cpu_share: 0.3}
"""


def test_a_run_is_known_by_what_it_measures(tmp_path: Path) -> None:
    """More conditions, repetitions and reports leave a run what it is; another option of the tool does not."""
    before = {run.name for run in planned(tmp_path)}
    assert before < {run.name for run in planned(tmp_path, parallelism=[1, 2, 96], repetitions=9, seed=3)}
    base = configuration(tmp_path) | yaml.safe_load(UNSEEN)
    base["tiers"]["further"] = {"path": "/nowhere", "kind": "network"}
    again = runs_of(base)
    assert {run.name for run in again} == before
    assert not {run.name for run in runs_of(base, index="of other images")} & before
    names = set()
    for token in ("one", "two"):
        base["dataset"]["source"] = f"https://user:{token}@example.org/study"
        names |= {run.name for run in runs_of(base)}
    assert len(names) == len(before), "a token changes nothing"
    assert all(run.configuration["validity"] == base["validity"] for run in again)  # the run itself judges by it
    assert not any(run.settings.dataset.drop for run in again), "images are there for all repetitions"
    base["tool"] = {"brainextractor": {"iterations": 7}}
    assert not {run.name for run in runs_of(base)} & before


def test_another_version_of_a_program_makes_other_runs_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of a campaign on a cluster has the programs of its node: it is known by what the command says alone."""
    own = {"command": "strip {input} {output}", "mask": "m.nii", "version": f"cat {tmp_path}/version"}
    base = configuration(tmp_path) | {"tool": {"name": "own", "own": own}}
    script(tmp_path / "strip", "")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    names = {False: set[str](), True: set[str]()}
    for version in ("1", "2"):
        (tmp_path / "version").write_text(version)
        for elsewhere, known in names.items():
            known.update(run.name for run in runs_of(base, elsewhere=elsewhere))
    assert (len(names[False]), len(names[True])) == (2 * 4, 4)


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    if find_mount(tmp_path).kind in ("tmpfs", "fsdax"):
        pytest.skip("the tests' own folder is memory")
    files = [tmp_path / f"{number}.nii.gz" for number in range(3)]
    for file in files:
        file.write_bytes(os.urandom(300_000))
    return files


@pytest.mark.alone
def test_cold_inputs_are_out_of_the_page_cache_and_warm_ones_in_it(inputs: list[Path]) -> None:
    for asked, resident in (("warm", 1.0), ("cold", 0.0), ("warm", 1.0)):
        state = prepare_cache(asked, inputs, [], in_memory=False)
        assert (state.state, state.problem) == (asked, "")
        assert state.resident == pytest.approx(resident, abs=0.01)


@pytest.mark.alone
def test_a_user_who_may_not_drop_the_page_cache_evicts_the_inputs_and_what_stays_is_said(
    inputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is mapped and in use stays in the page cache, whoever evicts it."""
    monkeypatch.setattr("neurotier.storage.page_cache.DROP", inputs[0].parent / "no/drop_caches")
    prepare_cache("warm", inputs, [], in_memory=False)
    with inputs[0].open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[::4096]) > 0
        state = prepare_cache("cold", inputs, [], in_memory=False)
    assert state.action == "synced, evicted 3 files"
    assert state.problem == "cold was asked for, and 33 % of the inputs were in memory"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Places of a results folder whose index has four participants of 1 MB."""
    places = Places.from_settings(Settings.from_config(configuration(tmp_path)))
    write_index(places, [image(str(number), 1_000_000) for number in range(4)])
    write_json(places.index / "dataset.json", dataset_json(Dataset("x", tmp_path / "clone", "datalad", {}, {})))
    return places


def campaign_of(places: Places, base: dict[str, Any], **limits: int) -> Campaign:
    return Campaign(runs_of(base), Settings.from_config(base), places, limits, print)


def preflight(places: Places, folder: Path, on: dict[str, Any] | None = None, mem_mb: int = 9000, **own: Any) -> None:
    """Look at a campaign, on a tier of its own if one is given."""
    base = configuration(folder, **({"placements": {"own": {"work": "own"}}} if on else {}), **own)
    base["tiers"]["own"] = tier("/dev/shm") | (on or {})
    check_campaign(campaign_of(places, base, mem_mb=mem_mb))


def test_preflight_refuses_what_cannot_fit(places: Places, tmp_path: Path) -> None:
    with pytest.raises(TierError, match=r"tier 'own': the campaign needs .* there \(work "):
        preflight(places, tmp_path, {"capacity": "5 MB"})
    with pytest.raises(TierError, match="tier 'own': declared as 'network'"):
        preflight(places, tmp_path, {"kind": "network"})
    with pytest.raises(SettingsError, match=r"tier 'own' on .*: an environment variable in '/scratch/\$SLURM_JOB_ID'"):
        preflight(places, tmp_path, {"path": "/scratch/$SLURM_JOB_ID", "kind": "block", "node": True})
    with pytest.raises(SettingsError, match=r"campaign\.parallelism: 2 at once need more memory .*: 1 fit into 900 MB"):
        preflight(places, tmp_path, mem_mb=900)
    with pytest.raises(SettingsError, match=r"parallelism: only 4 participants could run, not 96 at once"):
        preflight(places, tmp_path, parallelism=[96])
    write_json(places.index / "dataset.json", dataset_json(Dataset("x", tmp_path, "folder", {}, {})))
    with pytest.raises(SettingsError, match=r"the dataset is a plain folder, .* cannot be on 2 tiers"):
        preflight(places, tmp_path, placements={"disk": {}, "memory": {"dataset": "tmpfs"}})


def test_a_tier_in_memory_has_no_more_room_than_memory(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    total = psutil.virtual_memory().total
    memory = Tier("memory", mount_tmpfs(tmp_path / "memory", f"size={4 * total}"), "tmpfs", None)
    assert memory.free_bytes() > 2 * total
    with pytest.raises(TierError, match="tier 'memory': the campaign needs "):
        check_room(memory, {"work": 2 * total}, print)


@pytest.fixture
def campaign(places: Places, tmp_path: Path) -> Campaign:
    return campaign_of(places, configuration(tmp_path))


def keep(
    campaign: Campaign, run: PlannedRun, outputs: dict[str, str], valid: str = "valid", peak: int = 2, **ended: bool
) -> dict[str, Any]:
    """What is noted of a run of two participants."""
    row = {"valid": valid, "participants": 2, "failed": 0, "makespan_s": 3.0, "peak_parallelism": peak}
    row |= {"limited_by": "memory has room for 1 at once" if peak < 2 else None}
    cache = prepare_cache("as found", [], [], in_memory=False)
    noted = condition_json(campaign, run, row, cache, outputs, 4.0, **{"accident": False, "stopped": False} | ended)
    write_json(campaign.folder(run) / "condition.json", noted)
    return noted


def test_a_run_is_judged_and_kept(campaign: Campaign, tmp_path: Path) -> None:
    runs = [run for run in campaign.planned if run.condition.parallelism == 2][:4]
    first = keep(campaign, runs[0], {"x": "1"})
    assert first["valid"] == "valid"
    other = keep(campaign, runs[1], {"x": "2"})
    apart = f"outputs differ from those of {runs[0].condition}: 1 of 1 files, first x"
    assert other["valid"] == f"invalid: {apart} (campaign.compare_outputs: false allows that)"
    odd = keep(campaign, runs[1], {"x": "1", "no\udcff\n\ttext": "2"})  # as an app may name a file
    assert r": 1 of 2 files, first no\udcff text (" in odd["valid"], "a table and a terminal take that"
    fewer = keep(campaign, runs[2], {"x": "1"}, peak=1)
    assert fewer["valid"] == "invalid: 1 of 2 jobs ran at once at most: memory has room for 1 at once"
    swapped = keep(campaign, runs[3], {"x": "1"}, valid="invalid: the machine swapped")
    assert swapped["valid"] == "invalid: the machine swapped"
    assert campaign.condition_of(runs[0]) == first
    write_table(tmp_path / "plan.tsv", "plan", plan_rows(campaign))
    assert sum(row["there"] for row in read_table(tmp_path / "plan.tsv", "plan")) == 4


@pytest.mark.parametrize("end", [{"accident": True}, {"stopped": True}])
def test_a_run_without_all_its_participants_says_nothing_of_outputs(campaign: Campaign, end: dict[str, bool]) -> None:
    """Neither as the first, by which later ones are judged, nor as a later one: who was killed early has not failed."""
    first, *whole, last = campaign.planned[:4]
    part = "invalid: 1 participant not run"
    assert keep(campaign, first, {"x": "1"}, valid=part, **end)["valid"] == part
    for run in whole:
        assert keep(campaign, run, {"x": "1", "y": "2"})["valid"] == "valid"
    assert keep(campaign, last, {"x": "1"}, valid=part, **end)["valid"] == part


def test_a_run_with_an_accident_is_done_again_once(campaign: Campaign) -> None:
    run = campaign.planned[0]
    assert keep(campaign, run, {}, accident=True)["stopped"]
    assert run in campaign.to_do
    assert not keep(campaign, run, {}, accident=True)["stopped"]
    assert run not in campaign.to_do


def test_a_campaign_without_a_valid_run_fails(campaign: Campaign) -> None:
    for run in campaign.planned:
        keep(campaign, run, {}, valid="invalid: 1 participant failed")
    count = len(campaign.planned)
    with pytest.raises(
        RunError, match=rf"^campaign: {count} of {count} runs .*\(invalid: 1 participant failed\); see "
    ):
        walk(campaign)
    keep(campaign, campaign.planned[0], {})
    walk(campaign)


def test_a_run_without_room_says_where_and_what_to_do(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_planned(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/results/plan.tsv")

    monkeypatch.setattr(campaigns, "run_planned", run_planned)
    line = "could not be done: /results/plan.tsv: No space left on device; free some space there, and start the same "
    with pytest.raises(RunError, match=line):
        walk(campaign)


VALID, OTHERS = "valid", "invalid: disturbed by others"


@pytest.mark.parametrize(
    ("judged", "ends"),
    [
        ([OTHERS], True),
        ([VALID, OTHERS, VALID, OTHERS, OTHERS], True),
        ([VALID, OTHERS, VALID, "invalid: the machine swapped", OTHERS, VALID], False),
    ],
)
def test_a_campaign_ends_with_a_disturbed_first_run_or_two_in_a_row(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, judged: list[str], ends: bool
) -> None:
    rest = iter([*judged, *[VALID] * (len(campaign.planned) - len(judged))])
    row = {"makespan_s": 1.0, "cache_state": {"action": "none"}}
    monkeypatch.setattr(campaigns, "run_planned", lambda *_: {"valid": next(rest), **row})
    with pytest.raises(RunError, match="others use this machine") if ends else nullcontext():
        walk(campaign)
    assert len([*rest]) == (len(campaign.planned) - len(judged) if ends else 0)
