"""The main job as a user starts it: from a DataLad source to derivatives, tables and report, on any tier.

Its run is the demonstration of the first README, with coarse voxels and few iterations.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.places import file_of, short_hash
from readmes import DEMONSTRATION
from shown_values import shown
from support import (
    ROOT,
    Ended,
    Project,
    bids_errors,
    checksums,
    plain_dataset,
    read_json,
    save_image,
    small_head,
    t1w,
)

BRAIN_FILES = ("desc-brain_T1w.json", "desc-brain_T1w.nii.gz", "desc-brain_mask.json", "desc-brain_mask.nii.gz")
IMAGES = [
    "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1",
    "SiteA/sub-0099002/ses-1/anat/sub-0099002_ses-1_run-1",
    "SiteA/sub-0099002/ses-2/anat/sub-0099002_ses-2_run-1",
    "SiteB/sub-0099101/ses-1/anat/sub-0099101_ses-1_run-1",
    "SiteB/sub-0099101/ses-1/anat/sub-0099101_ses-1_run-2",
    "SiteB/sub-0099102/ses-1/anat/sub-0099102_ses-1_run-1",
]
QUICK = {"name": "brainextractor", "brainextractor": {"iterations": 15}}
DEMO = {"voxel_size_mm": 4}


@pytest.fixture(scope="module")
def finished(lasting: Project) -> Project:
    """The demonstration, and one of its sites on tmpfs with other cores."""
    ended = lasting.succeeds(*shlex.split(DEMONSTRATION)[1:], cores=0, demo=DEMO, tool=QUICK)
    (lasting.folder / "terminal.txt").write_text(ended.output)
    targets = ["participants", "results-tmpfs/derivatives/SiteB/dataset_description.json"]
    on_tmpfs = ["--workflow-profile", "profiles/tmpfs", "--config", "results=results-tmpfs"]
    lasting.succeeds(*targets, *on_tmpfs, cores=4, demo=DEMO, tool=QUICK, dataset={"sites": ["SiteB"]})
    return lasting


def test_derivatives_have_these_names(finished: Project) -> None:
    sites = [f"{site}/{name}" for site in ("SiteA", "SiteB") for name in ("README", "dataset_description.json")]
    expected = sorted([f"{image}_{name}" for image in IMAGES for name in BRAIN_FILES] + sites)
    assert sorted(checksums(finished.derivatives)) == expected


def test_results_have_these_names(finished: Project) -> None:
    """A file that is lost or left over fails this test."""
    kept = {
        str(path.relative_to(finished.results))
        for path in finished.results.glob("**/*")
        if path.is_file() and not {"derivatives", "logs", "state", "mosaics"} & set(path.parts)
    }
    drawn = ("account", "gantt", "nodes", "brain_volume")
    figures = {f"figures/{n}.{e}" for n in drawn for e in ("svg", "png", "tsv", "rst")} | {"figures/page.rst"}
    names = [f"profile/{n}" for n in ("profile", "traffic", "runs", "steps", "jobs")]
    names += ["group/group", "index/images", "index/skipped"]
    tables = {f"{n}.{e}" for n in names for e in ("tsv", "json")}
    records = {file_of(Path("profile/records"), image.partition("/ses-")[0]).as_posix() for image in IMAGES}
    index = {f"index/{name}" for name in ("dataset.json", "images.sha256", "sites.json", "tool.json")}
    assert kept == figures | tables | records | index | {"group/summary.json", "report.html"}
    assert figures <= read_json(finished.results / "state/outputs.json").keys(), "what is lost of it is made again"
    assert len(list((finished.results / "figures/mosaics").rglob("*.png"))) == len(IMAGES)
    assert finished.table("index/skipped.tsv") == [{"item": "SiteA/sub-0099003", "reason": "no T1w image"}]
    assert "SiteA/sub-0099003" in finished.page("report")


def test_state_is_of_the_kinds_that_the_readme_lists(finished: Project) -> None:
    table = (ROOT / "workflow/README.md").read_text().partition("\n## State\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = {name.strip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    kept = {path.name for path in (finished.results / "state").iterdir()}
    assert {"lock", "runs", "shares", "complete.json"} <= kept <= listed
    assert len(listed) <= 20


def test_bytes_do_not_depend_on_tier_and_parallelism(finished: Project) -> None:
    local, tmpfs = (checksums(finished.folder / results / "derivatives") for results in ("results", "results-tmpfs"))
    assert tmpfs == {name: sum_ for name, sum_ in local.items() if name.startswith("SiteB/")}
    assert len(tmpfs) == 14


def test_work_tiers_were_the_profiles_and_are_empty_afterwards(finished: Project) -> None:
    """``--config results=...`` of the command line must not undo the profile's ``config: placement``."""
    assert finished.leftovers() == []
    for tier, name in (("local", "results"), ("tmpfs", "results-tmpfs")):
        results = finished.folder / name
        (facts_file,) = (results / "state/runs").glob("*.json")
        work = read_json(facts_file)["tiers"]["work"]
        assert work["name"] == tier
        assert work["fs_type"] == "tmpfs" or tier == "local"
        assert not list(Path(work["path"]).glob(f"neurotier-*/work/{short_hash(str(results))}*"))


def test_derivatives_are_valid_bids(finished: Project) -> None:
    for site in ("SiteA", "SiteB"):
        assert bids_errors(finished.derivatives / site) == []


def test_profile_accounts_for_every_phase(finished: Project) -> None:
    rows, run = finished.table("profile/profile.tsv"), finished.only_run
    assert len(rows) == 4 * 4
    for row in rows:
        assert float(row["io_s"]) == pytest.approx(float(row["wall_s"]) - float(row["cpu_s"]), abs=1e-5)
        assert (row["staged_bytes"] == "n/a") == (row["phase"] in ("start_up", "compute"))
    staged = sum(int(row["staged_bytes"]) for row in rows if row["phase"] == "stage_in")
    assert staged == sum(map(int, finished.columns("size_bytes", "index/images.tsv")))
    makespan_s = max(float(row["end_s"]) for row in rows) - min(float(row["start_s"]) for row in rows)
    assert float(run["makespan_s"]) == pytest.approx(makespan_s, abs=1e-3)
    assert run["valid"] == "valid"
    assert float(run["mean_parallelism"]) <= int(run["peak_parallelism"]) <= 2


def again(finished: Project, *more: str, tool: Any = QUICK) -> Ended:
    """Start the demonstration once more."""
    return finished.snakemake(*more, demo=DEMO, tool=tool)


def test_the_terminal_is_calm(finished: Project) -> None:
    """What is being done, what was found, the two verdicts and the page; Snakemake's own words are in its log."""
    lines = (finished.folder / "terminal.txt").read_text().splitlines()
    progress = re.compile(r"\d+ of \d+ (steps|participants) done")  # the slower a machine, the more of it
    assert len([line for line in lines if not progress.match(line)]) <= 20, lines
    said = ["Indexing the dataset", "skipped SiteA/sub-0099003: no T1w image", "Analysing 4 of 4 participants: "]
    said += ["Results: 4 of 4 participants done, 0 failed", "Timings: ", "Report: "]
    assert [part for part in said if sum(part in line for line in lines) != 1] == []
    assert "Finished jobid: " in sorted((finished.folder / ".snakemake/log").iterdir())[0].read_text()


def test_a_second_start_has_nothing_to_do_not_even_on_another_tier(finished: Project) -> None:
    for tier in ("local", "tmpfs"):
        (line,) = again(finished, "--workflow-profile", f"profiles/{tier}").lines("Nothing to be done")
        assert line.endswith("results/report.html")


def test_another_threshold_is_refused_until_everyone_is_asked_for(finished: Project) -> None:
    tool = {"name": "brainextractor", "brainextractor": {"iterations": 15, "fractional_threshold": 0.4}}
    before = checksums(finished.results)
    ended = again(finished, "--dry-run", tool=tool).failed()
    (line,) = ended.lines("results: has 4 participants analysed with ")
    assert "with fractional_threshold 0.5, and this run has fractional_threshold 0.4; choose another folder" in line
    ended = again(finished, "--dry-run", "--forcerun", "analyze_participants", tool=tool).succeeded()
    assert len(ended.analysed) == 4, ended.output
    ended.says("4 participants analysed with fractional_threshold 0.5 would be removed")
    assert checksums(finished.results) == before


def test_another_dataset_is_refused_or_replaces_all_that_is_there(project: Project) -> None:
    """Its own selection and version are no reason to refuse it."""
    for name, labels in (("one", ("01", "02")), ("two", ("02", "03"))):
        plain_dataset(project.folder / name, {t1w(label): small_head(int(label)) for label in labels})

    def run(source: str, *arguments: str, selected: tuple[str, ...] = ()) -> Ended:
        targets = ["participants", "results/derivatives/dataset_description.json"]
        dataset = {"source": source, "participants": selected}
        return project.snakemake(*targets, *arguments, dataset=dataset, tool="noop")

    def there() -> dict[str, list[str]]:
        records, derivatives = project.results / "profile/records", project.derivatives
        found = {"records": records.rglob("sub-*"), "derivatives": derivatives.glob("sub-*")}
        return {name: sorted(path.stem[-2:] for path in paths) for name, paths in found.items()}

    run("one").succeeded()
    ended = run(str(project.folder / "one"), selected=("01",)).succeeded()
    assert ended.analysed == []
    before = checksums(project.results)
    ended = run("two").failed()
    one, two = project.folder / "one", project.folder / "two"
    ended.says(f"results: has 2 participants analysed with dataset {one}, and this run has dataset {two}; choose")
    project.own.unlink()
    for forced in ("--forcerun=analyze_participants", "--forceall"):
        project.fails("check", "--config", f"results={project.results}", forced).says(
            "this run has dataset demo, tool brainextractor; choose another folder with --config results=NAME, or give"
            " the settings of these results"
        )
    assert checksums(project.results) == before, "a target that analyses nobody removes nothing"
    ended = run("nowhere", "--forcerun", "analyze_participants").failed()
    assert there() == {"records": ["01", "02"], "derivatives": ["01", "02"]}, "nothing replaces them"
    run("two", "--forcerun", "analyze_participants").succeeded().says(
        f"2 participants analysed with dataset {one} are removed, and everyone is analysed with"
    )
    assert there() == {"records": ["02", "03"], "derivatives": ["02", "03"]}
    description = read_json(project.derivatives / "dataset_description.json")
    assert description["SourceDatasets"][0]["URL"] == two.as_uri()


def test_results_copied_into_others_are_refused_or_all_replaced(project: Project) -> None:
    """Whichever record is read first: neither are they those of this run, nor is anybody analysed anew in silence."""
    project.heads("01", "02")
    fractions = {"01": 0.4, "02": 0.6}

    def run(label: str, results: str, *arguments: str) -> Ended:
        tool = {"name": "bet", "bet": {"command": f"bet {{input}} {{output}}/brain -m -f {fractions[label]}"}}
        dataset = {"source": "bids", "participants": [label]}
        return project.snakemake("participants", *arguments, dataset=dataset, tool=tool, results=results)

    for label in fractions:
        run(label, label).succeeded()
        shutil.copytree(project.folder / label, project.folder / "both", dirs_exist_ok=True)
    for label, other in (("01", "02"), ("02", "01")):
        for arguments in ((), ("--dry-run",)):
            run(label, "both", *arguments).failed().says(
                f"has 1 participant analysed with command bet {{input}} {{output}}/brain -m -f {fractions[other]}, and"
            )
    assert run("01", "both", "--forcerun", "analyze_participants").succeeded().analysed == ["sub-01"]
    assert [folder.name for folder in (project.folder / "both/derivatives").glob("sub-*")] == ["sub-01"]


@pytest.mark.nightly
def test_images_that_cannot_be_dropped_stay(project: Project, demo_copy: Path) -> None:
    dataset: dict[str, Any] = {"source": demo_copy, "sites": ["SiteB"]}
    project.succeeds("participants", dataset=dataset, tool="noop")
    demo_copy.rename(demo_copy.with_name("away"))  # no other copy can be verified any more
    ended = project.succeeds(dataset={**dataset, "drop": True}, tool="noop")
    logs = {log.stem: log.read_text() for log in project.folder.glob("**/drop_images/**/*.log")}
    assert [line.split(": ")[1] for text in logs.values() for line in text.splitlines()] == ["kept"] * 2, (
        logs,
        ended.output,
    )
    ended.says("images stay on the dataset tier", "2 of 2 participants done, 0 failed")
    clone = next(project.folder.glob("neurotier-*/datasets/source-*"))
    assert all(image.exists() for image in clone.glob("SiteB/sub-*/ses-*/anat/*_T1w.nii.gz"))


def test_who_is_new_or_gone_is_said_and_content_that_changed_is_analysed_again(project: Project) -> None:
    project.heads("01", "02")
    project.succeeds("participants", "results/derivatives/README", tool="noop")
    assert read_json(project.derivatives / "dataset_description.json")["Name"] == "Trial of storage"
    assert (project.derivatives / "README").read_text().endswith("which tries storage: no image was analysed.\n")
    said = "new, gone or changed since the dataset was indexed"
    assert not project.succeeds("participants").lines(said)
    save_image(project.folder / "bids" / t1w("02"), small_head(5))
    (project.folder / "bids/sub-01").rename(project.folder / "bids/sub-03")
    (project.folder / "bids" / t1w("01").replace("sub-01", "sub-03", 1)).rename(project.folder / "bids" / t1w("03"))
    (line,) = project.succeeds("participants").lines(said)
    assert line.startswith(f"3 participants {said}: sub-01, sub-02, sub-03;")
    ended = project.succeeds("participants", "--forcerun", "index_dataset")
    assert ended.analysed == ["sub-02", "sub-03"]
    assert ended.lines(said)[0].endswith(": sub-01, sub-02, sub-03"), "the user is not asked for what the command does"
    assert not project.succeeds("participants").lines(said)


def test_a_page_of_an_earlier_run_is_not_said_to_be_of_this_one(project: Project) -> None:
    """Nor are the masks of an earlier table. Who was analysed again is tabulated again, though as many are done."""
    project.heads("01")
    project.succeeds(tool="bet").says("Results: 1 of 1 participant done, 0 failed, 1 brain mask")
    project.succeeds("participants", "--forcerun", "analyze_participants")
    project.succeeds().says("Report: ")
    project.heads("02")
    ended = project.succeeds("participants", "--forcerun", "index_dataset")
    assert ended.analysed == ["sub-02"]
    assert not [line for said in ("Timings:", "Report:", "mask") for line in ended.lines(said)], ended.output
    ended.says("Report of an earlier run: ")
    assert not project.fails("sweep").lines("Timings:"), "nobody was analysed"


def test_a_dataset_follows_its_tier_to_another_path(project: Project, demo_copy: Path) -> None:
    dataset = {"source": demo_copy, "sites": ["SiteB"]}
    for path in ("one", "two"):
        (project.folder / path).mkdir()
        tiers = {"data": project.folder / path}
        project.succeeds(
            "results/index/images.tsv", dataset=dataset, tool="noop", tiers=tiers, placement={"dataset": "data"}
        )
        cloned = Path(read_json(project.results / "index/dataset.json")["path"])
        assert cloned.is_relative_to(project.folder / path)


@pytest.mark.nightly
def test_first_runs_side_by_side_share_one_demonstration(project: Project) -> None:
    project.configure(demo={"voxel_size_mm": 4.0}, tool="noop")
    names = ("one", "two")
    runs = [project.start(f"{name}/index/images.tsv", "--config", f"results={name}") for name in names]
    for run in runs:
        run.ended().succeeded()


def test_plain_folder_on_another_file_system_is_read_where_it_lies(project: Project, memory_folder: Path) -> None:
    """Its tier is declared for it, and only read; a tier that is named for it must be the one on which it is."""
    folder, named = memory_folder / "study", {"dataset": "local"}
    plain_dataset(folder, {t1w("01"): small_head()})
    there = sorted(folder.iterdir())
    project.fails(dataset=folder, tool="noop", placement=named).says("not on the dataset tier 'local'")
    project.fails("advise", dataset=folder, tool="noop").says("tier 'dataset': is only read")
    assert not (project.results / "index/images.tsv").exists(), "refused before anything is done"
    project.succeeds("results/profile/runs.tsv")
    assert shown(project.only_run, "dataset_tier work_tier") == "dataset local"
    assert list(memory_folder.iterdir()) == [folder]
    assert sorted(folder.iterdir()) == there
