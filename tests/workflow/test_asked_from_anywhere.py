"""Commands beside a run, from any folder: a results folder says itself where everything of it is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from support import Ended, Project, read_json


def test_the_caller_s_folder_does_not_matter(project: Project, tiny_image: Path, tmp_path: Path) -> None:
    """Of two results folders, whose images lie in one store."""
    project.heads("00")
    for name in ("one", "two"):
        image = project.folder / f"{name}.sif"
        image.write_bytes(tiny_image.read_bytes() + name.encode())
        tool = {"name": "bet", "bet": {"image": image}}
        project.succeeds(f"{name}/index/image.json", "--sdm", "apptainer", tool=tool, results=name)
    one, other = str(project.folder / "one"), Project.at(tmp_path / "other")
    (private,) = project.folder.glob("neurotier-*")
    shutil.copytree(private, other.folder / private.name)  # another run's images, of the same names
    theirs, both = names(other), names(project)
    assert " done after" in other.neurotier("watch", one, "--once").output
    listed = other.neurotier("images", one).output.splitlines()
    assert listed[0].startswith(f"{len(listed) - 1} kept in {project.folder}/neurotier-"), "whose store it is"
    assert len(listed) > 1
    assert other.neurotier("images", one, "--remove-unused", "0") == Ended(0, "")
    assert names(project) == both
    shutil.rmtree(project.folder / "two")
    removed = other.neurotier("images", one, "--remove-unused", "0").succeeded()
    gone = both - names(project)
    assert {Path(path).name.partition("-")[0] for path in gone} == {"two"}
    assert all(str(project.folder / path) in removed.output for path in gone)
    assert names(other) == theirs


def test_results_may_be_an_absolute_path(project: Project, tmp_path: Path) -> None:
    project.heads("00")
    results = tmp_path / "elsewhere/out"
    project.fails("participants", tool="noop", results=results).says(
        f"config key results: {results.parent} is not an existing folder"
    )
    results.parent.mkdir()
    assert "1 T1w image of 1 participant; 0 skipped" in project.succeeds("participants").output
    assert list((results / "profile/records").rglob("sub-00.json"))
    assert not project.results.exists()
    project.neurotier("watch", str(results), "--once").succeeded()
    project.snakemake("participants").says("Nothing to be done")


def names(project: Project) -> set[str]:
    """Images of a project, placed and in its store, but for locks."""
    found = project.folder.glob("neurotier-*/image*/[!.u]*")
    return {str(path.relative_to(project.folder)) for path in found}


def test_a_folder_that_was_moved_or_copied_says_so(project: Project) -> None:
    project.heads("00")
    project.succeeds("results/index/tool.json", tool="noop")
    here = project.folder / "here"
    shutil.copytree(project.results, here)
    for command in (["watch", "--once"], ["images"], ["jobs"]):
        ended = project.neurotier(command[0], str(here), *command[1:])
        shutil.rmtree(project.results, ignore_errors=True)  # a copy first, then the only one
        assert ended.code == 78
        said = f"neurotier: {here}: its last run was in {project.results}: this folder was moved or copied; "
        assert ended.output == said + "start a run here, or name that folder\n"
    project.succeeds("here/index/tool.json", "--config", "results=here")
    project.neurotier("watch", str(here), "--once").succeeded()


def test_another_selection_counts_also_in_a_folder_that_was_moved(project: Project) -> None:
    """Snakemake remembers what was asked for by the paths of results. A dry run has the step of who is missing."""
    project.heads("00", "01")
    project.succeeds("participants", tool="noop")
    project.results.rename(project.folder / "moved")
    moved = replace(project, results_name="moved")
    lost = moved.records()[0]
    kept = lost.rename(project.folder / "kept")
    looked = moved.succeeds("participants", "--dry-run", tool="noop", results="moved")
    assert looked.analysed == [lost.stem]
    looked.says(": Analysing participants")
    kept.rename(lost)
    for chosen, left in ((["sub-01"], ["sub-01"]), ([], ["sub-00", "sub-01"])):
        dataset = {"source": "bids", "participants": chosen}
        assert moved.succeeds("participants", tool="noop", results="moved", dataset=dataset).analysed == []
        assert sorted(moved.columns("participant", "index/images.tsv")) == left
        moved.succeeds("participants").says("Nothing to be done")


def test_another_tool_makes_all_anew_also_in_a_folder_that_was_moved(project: Project) -> None:
    """Its name was that of the earlier one, in the description of the derivatives, and each start analysed everyone."""
    project.heads("00", "01")
    project.succeeds("all", tool="noop", dataset={"source": "bids", "participants": ["00"]})
    project.results.rename(project.folder / "moved")
    moved = replace(project, results_name="moved")
    (own := moved.results / "index/own.json").write_text("what no rule makes is the user's")
    moved.configure(tool="bet", results="moved")
    assert len(moved.succeeds("all", "--forcerun", "analyze_participants").analysed) == 2
    description = read_json(moved.derivatives / "dataset_description.json")
    assert description["GeneratedBy"][1]["Name"] == moved.record("sub-00")["tool"] == "bet"
    assert own.exists()
    moved.succeeds("all").says("Nothing to be done")
