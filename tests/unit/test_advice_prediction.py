"""The advice: machine, workload, interval and sentences from figures that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from neurotier.advice.basis import basis, calibrated, others_during_calibration
from neurotier.advice.calibration import BETWEEN, ObservedJob, observe, quantities, read_observed
from neurotier.advice.predict import Fetching, Inputs, Participant, Storage, paper_s, predict
from neurotier.advice.rehearsal import read_rehearsed
from neurotier.advice.situation import Situation, on_own_cores
from neurotier.advice.table import files_of
from neurotier.core.files import write_json
from neurotier.core.places import short_hash
from neurotier.core.settings import ROLES
from neurotier.core.tables import read_table, write_table
from neurotier.dataset.bids import size_of
from neurotier.meter.traffic import flow
from neurotier.model.machine import Processors
from neurotier.model.prediction import Prediction
from neurotier.model.this_machine import FileCost, Probed, TierFigures
from pool_jobs import image
from probed_tiers import inputs_of, job_of, spent, tier_figures
from report_data import make_results
from shown_values import shown

MB = 1e6
FOUR_ROLES = dict.fromkeys(ROLES, "disk")


def figures(kind: str = "block", speed: float = 100 * MB) -> TierFigures:
    """A tier that gets twice as fast from 1 to 4 streams; memory is ten times as fast."""
    return tier_figures(kind, {1: speed, 4: 2 * speed}, {1: 10 * speed, 4: 20 * speed})


STORAGE = Storage(FOUR_ROLES, {"disk": figures(), "tmpfs": figures("tmpfs")}, resident=0.0)
IN_MEMORY = replace(STORAGE, tiers=dict.fromkeys(FOUR_ROLES, "tmpfs"))


def job(size_mb: float, cpu_s: float, **changes: Any) -> ObservedJob:
    """A job that reads its images and writes half as much."""
    size = size_mb * MB
    phases = {
        "start_up": spent(),
        "stage_in": spent(read_bytes=size, written_bytes=size),
        "compute": spent(cpu_s=cpu_s, read_bytes=size),
        "stage_out": spent(read_bytes=size / 2, written_bytes=size / 2),
    }
    return job_of(int(size), {}, phases=phases, **changes)


PROBED = {
    "disk": Probed(figures(), figures(speed=50 * MB), figures(speed=200 * MB)),
    "tmpfs": Probed(*[figures("tmpfs", 1000 * MB)] * 3),
}
SMALL = Participant(int(100 * MB))


def inputs(**changes: Any) -> Inputs:
    """Four participants of 100 MB, each 10 s of computing on one of two cores, with a disk and a tmpfs."""
    usual: dict[str, Any] = {"observed": [job(50, 10.0), job(150, 10.0)], "participants": [SMALL] * 4, "probes": PROBED}
    return inputs_of(**usual | changes)


def situation(folder: Path, count: int) -> Situation:
    places, settings = make_results(folder, count)
    return Situation(settings, places)


FIVE = [image("1", 5)]
"""A participant's image, of 5 bytes."""


def record_of(name: str, *phases: dict[str, Any], **about: Any) -> dict[str, Any]:
    """The record of a participant, by its phases."""
    return {"participant": name, "run": "r", "slot_wait_s": 0.0, "tool": "t", "phases": list(phases)} | about


def phase_of(name: str, start_s: float, end_s: float, *flows: Any) -> dict[str, Any]:
    """A phase with what it moved."""
    times = {"start_s": start_s, "end_s": end_s, "cpu_s": 0.5, "account_other_s": 0.25, "run_queue_s": 0.0}
    own = {"wall_s": end_s - start_s, "residual_s": 0.125, "input_bytes": 5, "max_rss_bytes": 9}
    return {"phase": name, "traffic": list(flows), **own, **times}


def test_a_record_tells_bytes_and_files_by_phase() -> None:
    copied = flow("disk", "staging", read=(5, 2), files={"made_files": 9}), flow("disk", "staging", written=(7, 1))
    made = flow("disk", "growth", written=(9, 3), files={"made_files": 12})
    rows = phase_of("stage_in", 1.0, 2.0, *copied, flow("disk", "device", (99, None), (99, None)))
    record = record_of("sub-1", rows, phase_of("compute", 2.5, 4.0, made))
    found = observe(record, FIVE, 1)
    names = "cpu_s wait_s read_bytes read_files written_bytes written_files made_files"
    assert {phase: shown(values, names) for phase, values in found.phases.items()} == {
        "stage_in": "0.5 0 5 2 7 1 0",
        "compute": "0.5 0.25 5 0 9 3 12",
        BETWEEN: "0.5 0 0 0 0 0 0",
    }
    assert read_rehearsed({"shared": {"records": [record]}}, {"sub-1": FIVE}, 2) == [observe(record, FIVE, 2)]
    assert read_rehearsed({"shared": None}, {}, 1) == []
    counted = [observe(one, FIVE * 2, 1) for one in (record, record | {"calls": [{}]})]
    assert [shown(one, "size_bytes images") for one in counted] == ["10 2", "10 1"], "an app takes both at once"


def test_a_phase_that_counts_no_bytes_has_read_its_input_and_what_is_not_known_is_nothing() -> None:
    known, cached = phase_of("compute", 0.0, 1.0), flow("disk", "page_cache", read=(7, None))
    unknown = quantities(known | {"input_bytes": None, "account_other_s": None}, 1)
    nothing = quantities(known | {"account_other_s": None, "residual_s": None}, 1)
    uncounted = flow("disk", "growth", files={"made_files": None})
    found = [quantities(known | {"traffic": flows}, 1) for flows in ([cached], [uncounted])]
    assert [shown(each, "read_bytes made_files") for each in found] == ["7 0", "5 0"]
    assert nothing["wait_s"] == 0
    assert shown(unknown, "read_bytes wait_s") == "0 0.125", (
        "where no wait for storage is accounted, it is not explained"
    )


def test_a_job_of_several_threads_keeps_its_processors_as_long_as_one_of_them_computes() -> None:
    """Of 10 s it sleeps 2; by eight threads."""
    phase = phase_of("compute", 0.0, 10.0) | {"account_other_s": 2.0}
    for cpu_s, threads, expected in ((40.0, 8, 8.0), (6.0, 8, 6.0), (80.0, 8, 10.0), (20.0, 1, 20.0)):
        assert quantities(phase | {"cpu_s": cpu_s}, threads)["cpu_s"] == expected, (cpu_s, threads)


def test_time_of_hardware_threads_that_shared_a_core_is_that_of_a_core() -> None:
    """Two at once on one core with two threads: each would have taken 0.735 of it alone, by which the model divides."""
    first, second = job(100, 10.0), job(100, 10.0, start_s=1000.0, end_s=1010.0)
    machine = Processors(cores=1, threads=2, others=3.0)
    assert on_own_cores([first, second], machine) == [first, second], "one after the other"
    together = on_own_cores([first, first], machine)
    assert [one.phases["compute"]["cpu_s"] for one in together] == [pytest.approx(7.35)] * 2


def test_a_job_of_several_takes_what_one_took_that_was_tried() -> None:
    """Four on four cores by two jobs: in a copy each takes 3 s instead of 10, and 0.5 s of copying in memory."""
    untried = inputs(processors=Processors(4, 4), jobs=[[0, 1], [2, 3]])
    tried = replace(untried, rehearsed=[job(50, 3.0), job(150, 3.0)])
    # with two at once the second job is begun when the first has ended
    for known, at_once, expected_s in ((tried, 4, 3.5), (untried, 4, 10.5), (tried, 2, 2 * 3.5)):
        assert predict(known, IN_MEMORY, at_once).usual.makespan_s == pytest.approx(expected_s, abs=0.4)


def test_prediction_and_its_interval() -> None:
    """Four jobs of 10 s and about 1.5 s on the disk, two at once; the disk may be half or twice as fast."""
    on_disk, on_tmpfs = (predict(inputs(), storage, 2) for storage in (STORAGE, IN_MEMORY))
    assert on_disk.usual.limit == "processors"
    assert 21 < on_disk.usual.makespan_s < 24
    assert 20 < on_tmpfs.usual.makespan_s < on_disk.usual.makespan_s
    assert on_disk.low_s < on_disk.usual.makespan_s < on_disk.high_s
    assert paper_s(inputs(), STORAGE) == pytest.approx(4 * (250 / 100 + 150 / 50))
    assert predict(inputs(), STORAGE, 2) == on_disk  # drawn from a seed
    wide, narrow = (
        predict(inputs(observed=list(map(job, (50, 100, 120, 150), cpu_s))), STORAGE, 2)
        for cpu_s in ((5.0, 20.0, 6.0, 9.0), [10.0] * 4)
    )  # records that scatter, and such that do not
    assert wide.high_s - wide.low_s > 2 * (narrow.high_s - narrow.low_s)


def test_a_participant_with_eight_images_takes_two_cores_as_long_as_seven_with_one() -> None:
    """10 s an image, whatever its size, in one job: the others are analysed beside the first, and not behind it."""
    people = [Participant(int(800 * MB), images=8), *[SMALL] * 7]
    known = inputs(observed=[job(100, 10.0)] * 2, participants=people, jobs=[list(range(8))])
    found = predict(known, IN_MEMORY, 2).usual
    copying_s = 8 * 0.5
    assert found.makespan_s == pytest.approx(80 + copying_s, rel=0.03)
    assert found.phase_sums_s["compute"] == pytest.approx(150, rel=0.03)


def test_images_of_one_size_do_not_tell_what_larger_ones_take(tmp_path: Path) -> None:
    """One to four images each, of 4 MB and 1 s: one of 40 MB may take as long, or ten times as long."""
    known = inputs(
        observed=[job(4 * count, float(count), images=count) for count in (1, 2, 3, 4)],
        participants=[Participant(int(40 * MB))],
    )
    found = predict(known, IN_MEMORY, 1)
    assert found.low_s < 1.3
    assert found.high_s > 9
    assert "hardly separate" in calibrated(situation(tmp_path, 4), known, [])


def test_disturbed_runs_are_left_out_of_the_calibration_and_images_without_a_size_count_nothing(tmp_path: Path) -> None:
    """Of two runs, unless there is no other."""
    places, settings = make_results(tmp_path, 4)
    table = places.index / "images.tsv"
    write_table(table, "images", [row | {"size_bytes": None} for row in read_table(table, "images")])
    participants = Situation(settings, places).participants
    first, second, *_ = participants
    for name, valid in ((first, "invalid: disturbed: others took 40 % of the CPU time"), (second, "valid")):
        facts = {"started_s": 90.0, "settings": settings.to_json(), "row": {"valid": valid}}
        write_json(places.runs / f"{short_hash(name)}.json", facts)
        write_json(places.record(name), record_of(name, phase_of("compute", 100.0, 110.0), run=short_hash(name)))
    (one,) = read_observed(settings, places)
    assert (one.participant, one.size_bytes, one.was_disturbed) == (second, 0, False)
    assert size_of(participants[second]) == 0
    places.record(second).unlink()
    (one,) = read_observed(settings, places)
    assert (one.participant, one.was_disturbed) == (first, True)
    (places.runs / f"{short_hash(first)}.json").unlink()
    assert [one.participant for one in read_observed(settings, places)] == [first], "its facts were lost"


def test_what_passes_between_phases_is_work_that_waits_as_the_phases_did() -> None:
    """Of 6 s, 1 s was waiting for a slot and 4 s were phases, which waited 0.5 s for a core in 1 s of CPU time."""
    phases = [phase_of(name, start, start + 2.0) | {"run_queue_s": 0.25} for name, start in (("a", 0.0), ("b", 4.0))]
    got = {"cpu_s": 0.5, "wall_s": 2.0, "run_queue_s": 0.25, "fetched_files": 3}
    found = observe(record_of("sub-1", *phases, slot_wait_s=1.0, got=got, work_tier="disk"), FIVE, 1)
    assert shown(found, "start_s end_s queue_s max_rss_bytes work_tier") == "0 6 0.5 9 disk"
    assert found.got == got
    assert found.phases[BETWEEN]["cpu_s"] == pytest.approx(1.0 / 1.5)
    waiting = observe(record_of("sub-1", *phases, slot_wait_s=3.0), FIVE, 1)
    assert (waiting.phases[BETWEEN]["cpu_s"], waiting.got, waiting.work_tier) == (0, None, "")
    unknown = observe(record_of("sub-1", phases[0], phases[1] | {"run_queue_s": None}), FIVE, 1)
    assert shown(unknown, "queue_s queueing") == "- 1"
    assert replace(found, phases={}).queueing == 1


def test_files_of_all_and_what_those_of_one_take() -> None:
    """Each makes 40 files, which take 0.25 s and 0.5 s there: 30 s."""
    slow = replace(figures(), files={1: FileCost(0.25, 0.5)})
    made = job(100, 1.0, work_tier="disk")
    made.phases["compute"]["made_files"] = 40.0
    given = inputs(participants=[SMALL] * 3, observed=[made, made], probes={"disk": Probed(slow, slow, slow)})
    assert shown(files_of(given, FOUR_ROLES, 1), "work_files files_s") == "120 30"


TO_FETCH = [Participant(1, to_fetch_bytes=size) for size in (1 << 20, 3 << 20)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"others_cpu_share": None}, ["How much of the processors others will take is not known"]),
        ({"processors": Processors(2, 2, others=0.19)}, []),
        (
            {"others_cpu_share": 0.1, "processors": Processors(2, 2, others=0.2)},
            ["Others had 0.2 busy processes during the calibration; they are assumed to go on"],
        ),
        (
            {"others_cpu_share": 0.101},
            ["The calibration was disturbed: others took 10 % of the processors' time; ask again on a quiet machine"],
        ),
        (
            {"load_s": {}, "load_unknown_because": "nobody tried"},
            ["What a cold job loads of programs is not known and not included: nobody tried"],
        ),
        ({"load_s": {"compute": 0.0}}, ["Programs are in the page cache in cold runs, too"]),
        (
            {"load_s": {"compute": 1.5, "start_up": 0.5}},
            ["The first jobs of a cold run wait 2.00 s for their programs"],
        ),
        (
            {"participants": TO_FETCH},
            ["4 MiB of images are to be fetched; how long that takes is not known and not included"],
        ),
        (
            {"participants": TO_FETCH, "fetching": Fetching(s_per_byte=2.0 / (1 << 20), at_once=3)},
            ["4 MiB of images are to be fetched while others are analysed, 3 at once, 8.00 s one after the other"],
        ),
    ],
)
def test_what_was_disturbed_or_is_not_known_is_said(tmp_path: Path, changes: dict[str, Any], said: list[str]) -> None:
    found, given = situation(tmp_path, 2), inputs(**{"others_cpu_share": 0.0} | changes)
    _, _, _, *lines = basis(found, given, [])
    assert [line[: len(part)] for line, part in zip(lines, said, strict=True)] == said
    campaign = replace(found.settings.campaign, placements={"here": {}})
    of_campaign = Situation(replace(found.settings, campaign=campaign), found.places)
    assert "fetched" not in "".join(basis(of_campaign, given, [])), "that is done before it"


def test_what_others_had_in_place_of_a_job_of_two_threads_is_said_in_processes() -> None:
    given = inputs(others_cpu_share=0.0, processors=Processors(2, 2, others=0.2))
    assert "had 0.4 busy processes" in others_during_calibration(given, 0.1, threads=2)[0]


def test_how_well_records_determine_the_costs_is_said(tmp_path: Path) -> None:
    found, few = situation(tmp_path, 5), inputs(observed=[job(50, 1.5), job(150, 2.5)])
    first, second, *_ = everyone = list(found.participants)
    assert calibrated(found, few, [first, second]) == (
        f"CPU time and bytes by {first} (8.58 MiB), {second} (25.75 MiB): compute takes 1.00 s an image and 0.010 s"
        " per MB, which these records hardly separate (the interval tries each of them alone)"
    )
    assert "and 2 more:" in calibrated(found, few, everyone)
    assert " more" not in calibrated(found, few, everyone[:3])
    loud = inputs(observed=[replace(one, was_disturbed=True) for one in few.observed])
    assert "by 2 participants already analysed, of runs that others disturbed:" in calibrated(found, loud, [first])
    assert "by 2 participants already analysed:" in calibrated(found, few, [first])
    many = inputs(observed=[job(size, 1.0 + size / 100) for size in (50, 100, 150, 200)])
    assert calibrated(found, many, [first]).endswith("per MB, to 0 %")


def test_who_is_left_to_analyse_is_said(tmp_path: Path) -> None:
    fresh = situation(tmp_path, 5)
    places, everyone = fresh.places, list(fresh.participants)

    def said(done: int, **changes: Any) -> list[str]:
        for name in everyone[:done]:
            write_json(places.record(name), {})
        return basis(replace(fresh), inputs(others_cpu_share=0.0, **changes), everyone)

    assert said(0)[0] == "5 participants to analyse; a participant's images have 17.17 MiB (median)"
    first, *_, shared = said(2)
    assert first.startswith("3 participants to analyse, 2 of 5 done;")
    assert shared.startswith("Participants that share a job were not tried")
    assert "of CPU time" in said(2, rehearsed=[job(50, 10.0)])[-1]
    far = [job(50, 10.0, host="node7")]
    assert "Their times are those of node7, not of this machine" in said(2, observed=far)
    assert len(said(4)) == 2, "one shares no job"
    nodes = replace(fresh, checks=[places.check_table("thin")])
    line = next(line for line in basis(nodes, inputs(observed=far), everyone) if "node7" in line)
    assert line.startswith("Their times are those of node7; if nodes of this class have other processors, name "), line
    assert said(5)[0].startswith("5 participants to analyse;")
    assert replace(fresh).remaining == everyone, "who are all done are all predicted"


N = 10_000


PROBES = {
    tier: Probed(*[tier_figures(kind, {1: 1e15}, {1: 1e15}, files={1: cost, 2: FileCost(1.0, 1.0)})] * 3)
    for tier, kind, cost in (
        ("memory", "tmpfs", FileCost(2e-5, 0.0)),
        ("disk", "block", FileCost(5e-5, 1e-4)),
        ("net", "network", FileCost(3e-5, 1e-3)),
    )
}
"""Tiers whose bandwidth takes no time, and on which a file takes very long when two make some."""


def predicted(calibrated_on: str, work: str, cpu_s: float = 2.0, wait_s: float = 0.0) -> Prediction:
    """A prediction of a participant who makes 10,000 small files, as one did."""
    made = job_of(1, {"cpu_s": cpu_s, "wait_s": wait_s, "made_files": float(N)}, work_tier=calibrated_on)
    tiers = dict.fromkeys(ROLES, "memory") | {"work": work}
    given = inputs_of([made], participants=[Participant(1)], probes=PROBES)
    return predict(given, Storage(tiers, {name: probe.usual for name, probe in PROBES.items()}, 1.0), 1)


@pytest.mark.parametrize(
    ("calibrated_on", "job", "work", "expected_s"),
    [
        ("memory", (), "memory", 2.0),  # what was measured there, and nothing twice
        ("memory", (), "disk", 2.0 + N * (5e-5 - 2e-5) + N * 1e-4),
        ("memory", (), "net", 2.0 + N * (3e-5 - 2e-5) + N * 1e-3),
        ("disk", (), "memory", 2.0 - N * (5e-5 - 2e-5)),
        ("disk", (), "disk", 2.0 + N * 1e-4),  # waiting for storage is never taken from the calibration
        ("net", (2.0, 10.5), "net", 2.0 + 10.5),
        ("net", (2.0, 10.5), "memory", 2.0 + N * (2e-5 - 3e-5) + 0.5),
        ("net", (2.0, 4.0), "memory", 2.0 + N * (2e-5 - 3e-5)),  # there was less than the probe says
        ("disk", (2.0, 3.0), "memory", 2.0 - N * (5e-5 - 2e-5) + 3.0),  # sleep that is no waiting for a network stays
        ("memory", (0.1,), "disk", N * 5e-5 + N * 1e-4),
        ("unprobed", (), "disk", 2.0 + N * 1e-4),  # CPU time there is not known, so none is put in
    ],
)
def test_files_cost_what_tiers_differ_by(
    calibrated_on: str, job: tuple[float, ...], work: str, expected_s: float
) -> None:
    assert predicted(calibrated_on, work, *job).makespan_s == pytest.approx(expected_s, rel=0.02)
