"""Size: what the steps that see every participant take, for 685 participants and for 10 and 100 times as many.

The dataset is a tree of empty files; the results are invented records of jobs of three phases, and empty derivatives.
Both go through the code of a run, each step in a process of its own, whose imports count. Snakemake's own graph of jobs
is not ours and takes minutes for many: its dry run is measured for 685 alone. Other numbers can be given as words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench import Timed, print_table, scratch_project, timed
from neurotier.core.files import without, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import RUN as RUN_VARIABLE
from neurotier.core.settings import Settings
from neurotier.core.tables import grouped, write_table
from neurotier.dataset.source import Dataset
from neurotier.run.jobs import dataset_json
from neurotier.run.profile_tables import OF_RECORD
from report_data import RUN, SITES, facts, images_of, measured, names, profile_rows, settings_for, traffic_rows
from support import ROOT, Project

SIZES = (685, 6_850, 68_500)
START = 685
SLOTS = 25
STEP = "import sys; sys.path[:0] = sys.argv[1:3]; import size; size.take_step(*sys.argv[3:])"


def make(places: Places, settings: Settings, count: int) -> None:
    """The dataset, the records of everyone, their derivatives and the facts of the run; records are not flushed."""
    dataset, everyone = places.results / "bids", names(count)
    phases = grouped((row["participant"], row) for row in profile_rows(everyone, SLOTS))
    images = measured([image for number, name in enumerate(everyone) for image in images_of(name, number)])
    for name, of_name in grouped((image["participant"], image) for image in images).items():
        manifest = {}
        for folder in (dataset, places.derivatives):
            (folder / name / "ses-1/anat").mkdir(parents=True)
        for image in of_name:
            (dataset / image["image"]).touch()
            for path in (image["mask"], image["mask"].replace("_mask", "_T1w")):
                (places.derivatives / path).touch()
                manifest[path.removeprefix(f"{name}/")] = [0, "e3b0c442"]
        rows = [
            without(row, *OF_RECORD, "site")
            | {"traffic": [without(flow, "run", "participant", "phase") for flow in traffic_rows([row])]}
            for row in phases[name]
        ]
        record = {key: phases[name][0][key] for key in OF_RECORD}
        record |= {"phases": rows, "images": of_name, "derivatives": manifest}
        write_json(places.record(name), record, durable=False)
    for site in SITES:
        (dataset / site / "dataset_description.json").write_text('{"Name": "size", "BIDSVersion": "1.10.0"}')
    sites = {site: {"url": f"///{site}", "version": "4f2a91c0ffee4711"} for site in SITES}
    write_json(places.dataset_facts, dataset_json(Dataset("size", dataset, "folder", sites, {})))
    more = {"parallelism": SLOTS, "limits": {"mem_mb": 200_000}, "image": None, "analysis": "brainextractor"}
    write_json(places.runs / f"{RUN}.json", facts(places.results, settings, SLOTS) | more | {"ended_s": 1.8e9})
    write_json(places.settings_file, settings.to_json())


def index(places: Places, settings: Settings) -> None:
    """As ``scripts/index_dataset.py``."""
    from neurotier.dataset.index import index_dataset
    from neurotier.run.jobs import load_dataset
    from neurotier.run.participants import checksum_of

    found = index_dataset(load_dataset(places), settings.dataset, None, print)
    write_table(
        places.index / "skipped.tsv", "skipped", [{"item": item, "reason": why} for item, why in found.skipped.items()]
    )
    table = places.index / "images.tsv"
    write_table(table, "images", found.rows())
    write_text(places.index / "images.sha256", checksum_of(table.read_bytes()))


def plan(places: Places, settings: Settings) -> None:
    """What the rules ask for every participant, and the look for damage before it."""
    from neurotier.run.healing import damage_lines, find_damage
    from neurotier.run.participants import Made, key_of, selected_by
    from neurotier.run.plan import Plan

    whole: dict[str, Made] = {}
    found = find_damage(places, lambda file: [file], by_app=False, selection="", whole=whole)
    assert not damage_lines(found, removed=False)
    asked = Plan(settings, places)
    images = selected_by(places.index / "images.tsv")  # of which the invented records do not know the contents
    whole = {name: {**made, "analysis": key_of(asked.analysis, images[name])} for name, made in whole.items()}
    asked.find_remaining(whole, forced=False, slots=25)
    asked.ready()
    for share in asked.shares:
        asked.markers(share), asked.members(share), asked.share(share)
        asked.share_minutes(share), places.share(share)


def everyone_records(places: Places) -> list[Path]:
    """The inputs of the rules that tabulate."""
    from neurotier.run.participants import selected_in

    return [places.record(name) for name in selected_in(places)]


def tabulate(places: Places, settings: Settings) -> None:
    """As ``scripts/tabulate_profile.py``."""
    from neurotier.run.profile_tables import TABLES, tabulate_profile

    tables = {name: places.profile / f"{name}.tsv" for name in TABLES}
    tabulate_profile(places, everyone_records(places), tables)


def group(places: Places, settings: Settings) -> None:
    """As ``scripts/summarize_group.py``."""
    from neurotier.run.group import group_rows, summary
    from neurotier.run.profile_tables import read_records

    rows = group_rows(read_records(everyone_records(places)))
    write_table(places.group / "group.tsv", "group", rows)
    write_json(places.group / "summary.json", summary(rows))


def page(places: Places, settings: Settings) -> None:
    """As ``scripts/write_page.py``."""
    from neurotier.pages.report import PAGE

    PAGE.write(places, settings)


def end(places: Places, settings: Settings) -> None:
    """What the end of a run does for everyone."""
    from neurotier.run.head import count_states
    from neurotier.run.healing import note_outputs
    from neurotier.run.jobs import note_killed, read_failures
    from neurotier.run.participants import selected_in
    from neurotier.run.profile_tables import close_run

    note_killed(places, RUN, [])
    everyone, failures = selected_in(places), read_failures(places)
    close_run(places, RUN, everyone, failures)
    assert count_states(places, everyone, failures, 0).startswith(f"{len(everyone)} of {len(everyone)} ")
    note_outputs(places, lambda file: [file])


STEPS: dict[str, Callable[[Places, Settings], None]] = {
    step.__name__: step for step in (index, plan, tabulate, group, page, end)
}


def take_step(name: str, folder: str, count: str) -> None:
    """Take one step in this process."""
    settings = settings_for(Path(folder), mosaics=0)
    places = Places.from_settings(settings)
    if name == "make":
        make(places, settings, int(count))
    else:
        STEPS[name](places, settings)


def measure(project: Project, count: int) -> tuple[dict[str, Timed], dict[str, int]]:
    """Every step for so many participants, in order; and the size of every file that a reader opens, bytes."""
    folder = project.folder / "size"
    results = Places.from_settings(settings_for(folder)).results

    def step(name: str) -> Timed:
        paths = [str(ROOT / "tests"), str(ROOT / "tests" / "benchmarks")]
        command = [sys.executable, "-c", STEP, *paths, name, str(folder), str(count)]
        return timed(command, project.folder, **{RUN_VARIABLE: RUN})

    step("make")
    costs = {name: step(name) for name in STEPS}
    shown = [results / "report.html", *sorted((results / "figures").glob("*.svg")), results / "profile" / "profile.tsv"]
    return costs, {file.name: file.stat().st_size for file in shown}


def start(project: Project) -> Timed:
    """A dry run over an index that is there: the least of three."""
    for number, participant in enumerate(names(START)):
        for image in images_of(participant, number):
            file = project.folder / "bids" / image["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    timed(project.command("results/index/images.tsv", tool="noop"), project.folder)
    command = project.command("--dry-run", "--quiet")
    return min((timed(command, project.folder) for _ in range(3)), key=lambda run: run.cpu_s)


def seconds_and_mib(run: Timed) -> str:
    return f"{run.cpu_s:.1f} s, {run.max_rss_bytes / 2**20:.0f}"


def main(*sizes: str) -> None:
    steps: dict[str, list[str]] = {name: [name] for name in STEPS}
    files: dict[str, list[str]] = {}
    counts = [int(size) for size in sizes] or SIZES
    for count in counts:
        with scratch_project() as project:
            costs, bytes_of = measure(project, count)
        for name, run in costs.items():
            steps[name].append(seconds_and_mib(run))
        for name, size_bytes in bytes_of.items():
            files.setdefault(name, [name]).append(f"{size_bytes / 1e6:.1f}")
    with scratch_project() as project:
        dry_run = ["Snakemake's dry run", seconds_and_mib(start(project)), *[""] * (len(counts) - 1)]
    header = [f"{count:,}" for count in counts]
    print_table("Size: CPU time and peak memory, MiB, in a process each", ["step", *header], [*steps.values(), dry_run])
    print_table("Size: files, MB", ["file", *header], list(files.values()))
