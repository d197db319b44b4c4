"""Predictions of the published makespans: on small logs with known answers, and on the published ones."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import pytest
from neurotier.model.prediction import HIGH, MEASURED, MODEL_ERROR, PAPER
from neurotier.model.this_machine import UNEVENNESS
from neurotier.published.conditions import condition, condition_of
from neurotier.published.knowledge import Learner, evidence_of, shipping_in
from neurotier.published.predictions import Predictor, width
from neurotier.published.replay import Replay, read_published
from neurotier.published.validation import ALONE, CONDITION, DEVICE, SPLITS, TWIN, has_twin, held_out_conditions, scores
from published_logs import DISK_BENCH, spark_log, spark_task, whole_log, write_log
from shown_values import shown

DRAM_25, DRAM_96 = (condition(40, "gnu-parallel", processes, "DRAM") for processes in (25, 96))


def checkout(folder: Path) -> Path:
    """Logs of DRAM: waves of 25 blocks, 4 s each, and of 96, 15 s each; and one of Isilon."""
    logs = folder / "results" / "40bb_redo"
    for repetition in range(2):
        write_log(logs, f"1-tmpfsAD_1it_25cpus_40bb-{repetition}.out", whole_log(4.0))
        write_log(logs, f"1-tmpfsAD_1it_96cpus_40bb-{repetition}.out", whole_log(15.0, at_once=96))
    write_log(logs, "1-isilonAD_1it_96cpus_40bb-0.out", whole_log(600.0, at_once=96))
    write_log(folder / "system_conf", "ad_diskbench.out", DISK_BENCH + "tmpfsAD,3.0 GB/s,5.0 GB/s,5.0 GB/s\n")
    return folder


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return Predictor(read_published(checkout(tmp_path_factory.mktemp("checkout"))))


def without_runs_of(replay: Replay, *held: object) -> Replay:
    """The replay with other logs in the place of those that are held out: five times as slow."""
    runs = []
    for run in replay.runs:
        slow = tuple(replace(one, start_s=5 * one.start_s, end_s=5 * one.end_s) for one in run.phases)
        runs.append(replace(run, phases=slow) if run.condition in held else run)
    return replace(replay, runs=runs)


def test_nothing_of_what_is_held_out_has_a_part_in_its_prediction(waves: Predictor) -> None:
    """Were the runs of the condition, or of the device, others, the prediction and its interval were the same."""
    replay = waves.replay
    for held_out in (CONDITION, DEVICE):
        held = held_out_conditions(DRAM_25, replay.conditions, held_out)
        assert (DRAM_96 in held) == (held_out == DEVICE)
        other = without_runs_of(replay, *held)
        first = waves.predict(DRAM_25, held, held_out)
        second = Predictor(other).predict(DRAM_25, held, held_out)
        assert first == second
    held = frozenset([DRAM_25])
    changed = Predictor(without_runs_of(replay, DRAM_96)).predict(DRAM_25, held, CONDITION)
    usual = waves.predict(DRAM_25, held, CONDITION)
    assert changed.makespan_s != usual.makespan_s, "what may be known has a part in it"


def test_the_jvm_stands_still_in_proportion_to_what_is_in_flight(tmp_path: Path) -> None:
    """Two blocks a second, but for one pause of 20 s in each minute: with 96 the pauses are 3.84 times as long."""
    text, clock = "", 30.0
    for number in range(1000):
        clock += 20.5 if number % 80 == 79 else 0.5
        text += spark_task(number, clock, 25, (1.0, 1.0, 1.0))
    text = f"driver_program,0,{clock + 3!r},/out/run,allfiles\n{text}"
    write_log(tmp_path / "20bb_redo", "spark-1-tmpfs_1it_25cpus_20bb-0.out", text)
    replay = read_published(tmp_path)
    seen = shipping_in(replay.runs[0])
    assert seen is not None
    assert seen.first_s == 30.5
    assert seen.pauses == pytest.approx(12 * 20.5 / (12 * 20.5 + 962 * 0.5), rel=0.01)
    more = condition(20, "spark", 96, "Optane, Memory mode")
    jvm = Learner(more, evidence_of(replay), replay).learn().jvm
    assert jvm is not None
    assert jvm.bytes_per_s == pytest.approx(seen.bytes_per_s / (1 - seen.pauses + seen.pauses * 96 / 25))
    assert jvm.first_s == pytest.approx(30.5 * 96 / 25)


@pytest.mark.parametrize(("times_s", "expected"), [((500.0, 510.0, 140.0), "505 1"), ((500.0, 140.0), "320 0")])
def test_a_repetition_that_took_much_less_is_left_out(tmp_path: Path, times_s: Sequence[float], expected: str) -> None:
    """Of two nobody knows which that is."""
    logs = tmp_path / "20bb_redo"
    for repetition, driver_s in enumerate(times_s):
        text = spark_log(blocks=1000, at_once=25, driver_s=driver_s)
        write_log(logs, f"spark-1-tmpfs_1it_25cpus_20bb-{repetition}.out", text)
    replay = read_published(tmp_path)
    rows = Predictor(replay).predictions()
    (row,) = [row for row in rows if row["measured_s"] and row["member"] == MEASURED]
    assert shown(row, "measured_s stalled") == expected


@pytest.fixture(scope="module")
def published(reference: Path) -> Predictor:
    return Predictor(read_published(reference))


def test_published_makespans(published: Predictor) -> None:
    """Eq. (1) is off by 2.33."""
    rows = [row for row in published.predictions() if row["resolution_um"] == 40]
    misses = [math.log(row["ratio"]) for row in rows if row["member"] == PAPER]
    assert len(misses) == 14
    assert math.exp(statistics.fmean(map(abs, misses))) == pytest.approx(2.33, abs=0.005)
    stalled = {(row["device"], row["mode"]) for row in rows if row["stalled"]}
    assert stalled == {("local SSD", "Memory mode"), ("local SSD", "App Direct")}


def test_held_out_predictions_of_the_published_runs(published: Predictor) -> None:
    """What `workflow/README.md` says: each condition without its runs, and each device without its."""
    found = {(score.held_out, score.member): score for score in scores(published.validation())}
    assert [found[split, MEASURED].conditions for split in SPLITS] == [18, 8, 10, 18]
    for split, most in {CONDITION: 1.1, TWIN: 1.05, ALONE: 1.12, DEVICE: 1.35}.items():
        score = found[split, MEASURED]
        assert score.factor < most
        assert score.covered is not None
        share = score.covered / score.conditions
        assert share >= 0.8
        assert share <= 0.97 or split == ALONE, "of ten, nine or all"
        assert found[split, PAPER].factor > 1.5
    assert found[CONDITION, MEASURED].close == 17


def test_streams_of_a_probed_tier_are_as_unequal_as_on_the_published_devices(published: Predictor) -> None:
    known = published.evidence.unevenness.dropna()
    of_devices = known.groupby([one.tier for one in known.index]).mean()
    assert of_devices.median() == pytest.approx(UNEVENNESS, abs=5e-4)


def test_what_advice_takes_the_model_to_be_off_by_is_what_it_was_off_by(published: Predictor) -> None:
    """On conditions without a twin: the tier of a placement has not run the tool before."""
    ratios = [
        row["ratio"]
        for row in published.validation()
        if (row["held_out"], row["member"]) == (CONDITION, MEASURED)
        and not has_twin(condition_of(row), published.measured_s)
    ]
    assert math.log(width(ratios)) / NormalDist().inv_cdf(HIGH) == pytest.approx(MODEL_ERROR, abs=0.0005)
