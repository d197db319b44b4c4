"""Synthetic results folders for the tests of figures and report: real tables, invented numbers; and their reports."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from configured import settings_at
from neurotier.core.files import write_json
from neurotier.core.parallelism import extent, job_spans, mean, peak
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import Row, Rows, columns, write_table
from neurotier.dataset.bids import read_image
from neurotier.dataset.index import Index
from neurotier.dataset.source import Dataset
from neurotier.meter.traffic import flow
from neurotier.meter.usage import ACCOUNT
from neurotier.pages.report import PAGE
from neurotier.pages.report.data import participant_jobs
from neurotier.run.group import group_rows, summary
from neurotier.run.jobs import dataset_json
from neurotier.run.profile_tables import site_of
from page_reader import Reader, read

RUN = "20261121T044000Z-3f9a"
EARLIER = "20261120T210000Z-77c1"
START_S = 1795236000.0
IMAGE_BYTES = 9_000_000
SITES = ("BNU_1", "DC_1", "HNU_1", "IACAS", "IBA_TRT", "IPCAS_1", "JHNU", "LMU_2", "MPG_1", "NYU_2", "UM", "UPSM_1")
ROWS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("report_rows.yaml").read_text())


def settings_for(folder: Path, mosaics: int = 24) -> Settings:
    """Settings whose only tier is ``folder``."""
    return settings_at(folder, tiers={"disk": {"path": str(folder), "kind": "block"}}, report={"mosaics": mosaics})


def names(count: int) -> list[str]:
    """Participants: without sites if few, over the sites if many."""
    if count < 20:
        return [f"sub-{number:02d}" for number in range(1, count + 1)]
    return [f"{SITES[number * len(SITES) // count]}/sub-{25000 + number:07d}" for number in range(count)]


def images_of(participant: str, number: int) -> Rows:
    """One to three images of a participant: 1,233 for 700 participants."""
    site, _, folder = participant.rpartition("/")
    runs = range(1, 2 + (number % 4 != 0) + (number % 87 == 1))
    paths = [f"{participant}/ses-1/anat/{folder}_ses-1_run-{run}_T1w.nii.gz" for run in runs]
    images = [read_image(path, site)._replace(size_bytes=IMAGE_BYTES, content="key") for path in paths]
    return Index(images, {}).rows()


def profile_rows(participants: list[str], slots: int, earlier: int = 0) -> Rows:
    """Phases of participant jobs on ``slots`` slots; the first ``earlier`` ran in an earlier run."""
    source = np.random.default_rng(1)
    rows = Rows()
    runs = {EARLIER: (participants[:earlier], START_S - 27600), RUN: (participants[earlier:], START_S)}
    for run, (members, start) in runs.items():
        free = [start + 0.2 * slot for slot in range(slots)]
        for participant in members:
            clock = heapq.heappop(free)
            compute = float(source.lognormal(3.0, 0.35))
            stage_in = float(source.uniform(0.3, 2.5))
            parts = {"stage_in": (stage_in, 0.2), "compute": (compute, 0.93), "stage_out": (0.2, 0.3)}
            for phase, (wall, share) in parts.items():
                rows.append(phase_row(run, participant, phase, clock, wall, wall * share))
                clock += wall + 0.02
            heapq.heappush(free, clock + 0.1)
    return rows


def phase_row(run: str, participant: str, phase: str, start: float, wall: float, cpu: float) -> Row:
    """One row of ``profile.tsv``; of what is not CPU, half is waiting for a core."""
    waited = {"run_queue_s": 0.5 * (wall - cpu), "block_io_s": 0.3 * (wall - cpu), "memory_stall_s": 0.0}
    used = {"user_s": 0.9 * cpu, "system_s": 0.1 * cpu}
    causes = {**used, **waited, "other_s": 0.2 * (wall - cpu)}
    cached = {"input_resident_before": 1.0, "input_resident_after": 1.0, "input_bytes": IMAGE_BYTES}
    return {
        **dict.fromkeys(columns("profile")),
        **ROWS["profile"],
        "run": run,
        "participant": participant,
        "site": site_of(participant),
        "phase": phase,
        "start_s": start,
        "end_s": start + wall,
        "wall_s": wall,
        "cpu_s": cpu,
        "io_s": wall - cpu,
        **used,
        **waited,
        **{f"account_{cause}": value for cause, value in causes.items()},
        "max_rss_bytes": 420_000_000 if phase == "compute" else 60_000_000,
        "staged_bytes": None if phase == "compute" else IMAGE_BYTES,
        **(cached if phase == "stage_in" else {}),
    }


def without_account(row: Row) -> Row:
    """A row of ``profile.tsv`` as it is where the kernel accounts waits for a core alone."""
    unknown = (*ACCOUNT, "residual_s", "account", "block_io_s", "memory_stall_s")
    return {**row, **dict.fromkeys(unknown)}


def sampled(row: Row, seen_share: float) -> Row:
    """A row of ``profile.tsv`` as it is where the kernel hands over no exit records."""
    unknown = ("account_memory_stall_s", "memory_stall_s", "thread_s", "processes", "threads")
    changes = {"account": "sampled", "wait_source": "sampled", "seen_share": seen_share}
    return {**row, **dict.fromkeys(unknown), **changes}


def traffic_rows(profile: Rows) -> Rows:
    """Rows of ``traffic.tsv``: what was staged from and to the tier, and what compute left on it."""
    moved = (IMAGE_BYTES, 2)
    staged = [flow("disk", "staging", read=moved), flow("disk", "staging", written=moved)]
    left = [flow("disk", "growth", written=(IMAGE_BYTES, 4))]
    return [
        {key: row[key] for key in ("run", "participant", "phase")} | each
        for row in profile
        for each in (left if row["phase"] == "compute" else staged)
    ]


SUMMED = ("wall_s", "cpu_s", "io_s", *ACCOUNT, "residual_s")


def run_row(run: str, profile: Rows, **changes: Any) -> Row:
    """One row of ``runs.tsv`` from its phases."""
    rows = [row for row in profile if row["run"] == run]
    spans = job_spans(rows)
    start, end = extent(spans) or (0.0, 0.0)
    return {
        **ROWS["runs"],
        "run": run,
        "parallelism": changes.get("cores", 2),
        "participants": len(spans),
        "start_s": start,
        "end_s": end,
        "makespan_s": end - start,
        "flushed_s": end - start,
        **{f"{name[:-2]}_sum_s": sum(row[name] for row in rows) for name in SUMMED},
        "mean_parallelism": mean(spans),
        "peak_parallelism": peak(spans),
        **changes,
    }


def job_rows(profile: Rows, nodes: int) -> Rows:
    """Rows of ``jobs.tsv`` for the last run: shares of four, on one node after the other."""
    times = sorted(participant_jobs(row for row in profile if row["run"] == RUN), key=lambda job: job["start_s"])
    found = []
    for number, at in enumerate(range(0, len(times), 4)):
        members = times[at : at + 4]
        started_s = members[0]["start_s"] - 1
        ended_s = max(row["end_s"] for job in members for row in job["phases"]) + 1
        own = {
            "run": RUN,
            "job": str(100 + number),
            "share": str(number),
            "members": " ".join(job["participant"] for job in members),
            "node": f"n{1 + number % nodes}",
            "submitted_s": started_s - 5 - number,
            "started_s": started_s,
            "ended_s": ended_s,
            "queue_wait_s": 5.0 + number,
            "elapsed_s": ended_s - started_s,
        }
        found.append(ROWS["jobs"] | own)
    return found


def measured(images: Rows) -> Rows:
    """What records have of images: masks, and brain volumes around 1,400 cm3; every 180th of many is an outlier."""
    source, found = np.random.default_rng(2), Rows()
    for number, image in enumerate(images):
        voxels = round(source.normal(175_000, 13_750) * (0.4 if number % 180 == 3 else 1.0))
        mask = image["path"].replace("_T1w", "_desc-brain_mask")
        made = {"image": image["path"], "mask": mask, "brain_voxels": voxels, "voxel_volume_mm3": 8.0}
        found.append({key: image[key] for key in ("participant", "session", "bids_run")} | made)
    return found


def make_results(
    folder: Path,
    count: int,
    *,
    failed: int = 0,
    not_run: int = 0,
    slots: int = 2,
    earlier: int = 0,
    mosaics: int = 24,
    nodes: int = 0,
) -> tuple[Places, Settings]:
    """Write every table and record of a results folder of ``count`` participants; no figure, no mosaic.

    With ``nodes`` the last run was on a cluster (:func:`job_rows`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_for(folder, mosaics)
    places = Places.from_settings(settings)
    participants = names(count)
    images = [row for number, name in enumerate(participants) for row in images_of(name, number)]
    done = participants[: count - failed - not_run]
    profile = profile_rows(done, slots, earlier=earlier)
    masks = measured([row for row in images if row["participant"] in set(done)])
    volumes = group_rows({"participant": row["participant"], "images": [row]} for row in masks)
    runs = [run_row(EARLIER, profile, cores=slots)] if earlier else []
    if len(done) > earlier:
        valid = f"invalid: {failed} of {count} participants failed" if failed else "valid"
        runs.append(run_row(RUN, profile, failed=failed, valid=valid, cores=slots, oversubscribed=slots > 8))
    tables = {
        "index/images": images,
        "index/skipped": [{"item": "sub-99/anat/sub-99_T1w.nii.gz", "reason": "image is empty (0 bytes)"}],
        "profile/profile": profile,
        "profile/traffic": traffic_rows(profile),
        "profile/runs": runs,
        "profile/steps": [],
        "profile/jobs": job_rows(profile, nodes) if nodes else [],
        "group/group": volumes,
    }
    for path, rows in tables.items():
        write_table(places.results / f"{path}.tsv", Path(path).name, rows)
    sites = {site: {"url": f"///{site}", "version": "4f2a91c0ffee4711"} for site in SITES} if count >= 20 else {}
    dataset = Dataset("demo", places.datasets / "demo", "datalad", sites, {})
    write_json(places.dataset_facts, dataset_json(dataset))
    write_json(places.group / "summary.json", summary(volumes))
    for participant in participants[count - failed - not_run : count - not_run]:
        record = {"participant": participant, "stage": "compute", "reason": "brainextractor ended with exit status 1"}
        log = f"logs/participant/{participant}.log"
        write_json(places.failure(participant), {**record, "exit_code": 70, "run": RUN, "log": log})
    write_json(places.runs / f"{RUN}.json", facts(folder, settings, slots))
    return places, settings


def read_report(places: Places, settings: Settings) -> Reader:
    """Write the run report with its figures, and read it."""
    PAGE.write(places, settings)
    return read(places.results / "report.html")


def facts(folder: Path, settings: Settings, slots: int) -> Row:
    """``state/runs/<run>.json``."""
    return {
        **ROWS["facts"],
        "run": RUN,
        "started_s": START_S - 8.0,
        "command_line": ["snakemake", "--cores", str(slots), "--config", "results=demo results"],
        "cores": slots,
        "oversubscribed": slots > 8,
        "tiers": dict.fromkeys(ROLES, ROWS["tier"] | {"path": str(folder)}),
        "settings": settings.to_json(),
    }
