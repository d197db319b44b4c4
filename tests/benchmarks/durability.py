"""Durability and checks: what they cost a participant, with and without, in turn, on the local disk.

One participant with a 1 mm head (ch2, or a phantom of its size) and the stand-in for bet, some seconds of work. The
same job runs with nothing left out, with no flush to the device, without checksums of its derivatives, and without
either; ``share`` is what a job takes more than one without either, in per cent, pairs compared in the order they ran.
The second table is the look at the start of every command: is all there that was written?
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from bench import Timed, print_table, scratch_project, spread, timed
from neurotier.core.places import Places, file_of
from neurotier.core.settings import Settings
from neurotier.run.healing import find_damage
from support import DEBIAN_HEAD, STAND_INS, Project, plain_dataset, t1w

REPETITIONS = 15
PARTICIPANTS = 685

WITHOUT_FLUSH = (
    "import os; from neurotier import files; os.fsync = lambda _: None; files.begin_write_back = lambda *_: None; "
)
WITHOUT_CHECKS = "from neurotier.analysis import staging; staging.manifest_of = lambda _: {}; "
VARIANTS = {
    "all": "",
    "no flush": WITHOUT_FLUSH,
    "no checksums": WITHOUT_CHECKS,
    "neither": WITHOUT_FLUSH + WITHOUT_CHECKS,
}


def job(project: Project, patch: str) -> Timed:
    """One participant job, with something left out."""
    shutil.rmtree(project.results / "derivatives", ignore_errors=True)
    words = ["analyze-participants", "sub-01", "--results", "results", "--log", "results/log"]
    program = f"{patch}from neurotier.__main__ import main; raise SystemExit(main({words!r}))"
    return timed(
        [sys.executable, "-c", program],
        project.folder,
        NEUROTIER_RUN="benchmark",
        PYTHONPATH=str(project.folder / "workflow"),
        PATH=f"{STAND_INS}:{Path(sys.executable).parent}:/usr/bin:/bin",
    )


def stage_out_s(project: Project) -> float:
    """How long the last job's derivatives took to be published, s."""
    record = json.loads(file_of(project.results / "profile" / "records", "sub-01").read_text())
    return float(next(phase["wall_s"] for phase in record["phases"] if phase["phase"] == "stage_out"))


def prepare(project: Project) -> None:
    """Have everything ready up to the participant job."""
    shape = np.random.default_rng(0).integers(0, 1000, (181, 217, 181)).astype(np.int16)
    dataset = plain_dataset(project.folder / "bids", {t1w("01"): shape})
    if DEBIAN_HEAD.exists():
        shutil.copy(DEBIAN_HEAD, dataset / t1w("01"))
    arguments = project.configure(dataset={"source": str(dataset)}, tool={"name": "bet"})
    ended = project.snakemake("ready", *arguments, path=STAND_INS)
    assert ended.code == 0, ended.output


def measure(project: Project) -> None:
    """Print what flush and checksums cost a job."""
    jobs: dict[str, list[Timed]] = {name: [] for name in VARIANTS}
    published: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for patch in VARIANTS.values():
        job(project, patch)  # the first of each warms up
    for _ in range(REPETITIONS):
        for name, patch in VARIANTS.items():
            jobs[name].append(job(project, patch))
            published[name].append(stage_out_s(project))
    rows = []
    for name, runs in jobs.items():
        more = [100 * (one.wall_s / other.wall_s - 1) for one, other in zip(runs, jobs["neither"], strict=True)]
        wall, cpu = spread([one.wall_s for one in runs]), spread([one.cpu_s for one in runs])
        rows.append([name, wall, cpu, spread(published[name], 4), f"{statistics.median(more):.1f}"])
    print_table(
        f"One participant, {REPETITIONS} jobs each, medians (range)",
        ["job", "wall (s)", "CPU (s)", "stage_out (s)", "share (%)"],
        rows,
    )


def look(project: Project) -> None:
    """Print what the look at the start costs with as many participants as CoRR has."""
    os.chdir(project.folder)
    settings = Settings.from_json(json.loads((project.results / "state/settings.json").read_text()))
    places = Places.from_settings(settings)
    for number in range(2, PARTICIPANTS + 1):
        shutil.copy(places.record("sub-01"), places.record(f"sub-{number:03d}"))
        shutil.copytree(places.analysed("sub-01", False), places.analysed(f"sub-{number:03d}", False))
    walls_s, cpus_s = [], []
    for _ in range(5):
        begin_s, cpu_s = time.perf_counter(), time.process_time()
        damages = find_damage(places, by_app=False)
        walls_s.append(time.perf_counter() - begin_s)
        cpus_s.append(time.process_time() - cpu_s)
        assert not damages, damages[:3]
    print_table(
        f"The look at the start of a command, {PARTICIPANTS} participants",
        ["wall (s)", "CPU (s)", "a participant (us)"],
        [[spread(walls_s, 3), spread(cpus_s, 3), f"{1e6 * statistics.median(cpus_s) / PARTICIPANTS:.0f}"]],
    )


def main() -> None:
    with scratch_project() as project:
        prepare(project)
        measure(project)
        look(project)


if __name__ == "__main__":
    main()
