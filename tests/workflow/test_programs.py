"""A user's own program in place of a tool: on the host and in an image, and what it must not do."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from conftest import missing
from container_images import Engine, make_tiny
from support import ENVIRONMENT, Project, checksums, save_image, script, small_head, system, t1w

STRIP = """for word; do echo "word $word"; done
echo "threads $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS"
cp "$1" "$2/brain.nii.gz"
"""
"""It prints its words, and copies the image, which is 0 in one voxel of 20 of the air, in the place of the brain."""

WORDS = ("$(touch pwned)", ";", "touch pwned", "|", "*", "a  b", "`id`", ">", "pwned", "$HOME", "&")
OWN = {
    "command": "strip {input} {output} '$(touch pwned)' ; 'touch pwned' | * 'a  b' `id` > pwned $HOME &",
    "brain": "brain.nii.gz",
}


def own_tool(**changes: object) -> dict[str, object]:
    """The section of the program, with other keys."""
    return {"name": "own", "own": {**OWN, **changes}}


def with_program(folder: Path, text: str = STRIP) -> Path:
    """A folder with the program."""
    return script(folder / "strip", text).parent


def test_the_same_bytes_on_the_host_and_in_an_image_and_no_shell_reads_its_words(
    project: Project, engine: Engine, tmp_path: Path
) -> None:
    project.heads("01", "02")
    program = with_program(tmp_path / "programs")
    (tmp_path / "image").mkdir()
    image = make_tiny(engine, tmp_path / "image", programs={"strip": STRIP})
    project.configure(tool=own_tool(image=image, version="echo 1.2 ; $HOME", threads=2))
    made = {}
    for results, switches in (("on-host", ()), ("in-image", ("--sdm", "apptainer"))):
        project.succeeds("participants", "--config", f"results={results}", *switches, path=program, cores=4)
        there = Project(project.folder, results_name=results)
        made[results] = checksums(there.derivatives)
        said = there.log("sub-01").read_text().splitlines()
        assert [line for line in said if line.startswith("word ")][2:] == [f"word {word}" for word in WORDS]
        assert "threads 2 2" in said, "those of the participant, of the 4 of the job"
        record = there.record("sub-01")
        assert (record["tool"], record["tool_version"]) == ("own", "1.2 ; $HOME")
    assert made["on-host"] == made["in-image"]
    assert len(made["on-host"]) >= 8
    assert not list(tmp_path.rglob("pwned"))
    image.rename(tmp_path / "elsewhere.sif")  # who was analysed by it stays so
    project.fails("participants", "--config", "results=in-image", "--sdm", "apptainer").says("no such file")
    assert there.record("sub-01") == record


def test_a_tool_without_an_image_is_said_to_run_outside_a_container(project: Project) -> None:
    project.heads("01")
    made = "results/index/tool.json"
    project.succeeds(made, "--sdm", "apptainer", tool="noop").says(
        "Looking for noop, and preparing it outside a container: tool.noop.image is not set"
    )
    assert project.succeeds(made, "--forcerun", "prepare_tool").lines("outside a container") == []


def test_what_a_program_writes_is_checked(project: Project, tmp_path: Path) -> None:
    project.heads("01", "nothing", "grid")
    other = save_image(tmp_path / "other.nii.gz", small_head()[:10])
    text = f'case $1 in *nothing*) ;; *grid*) cp {other} brain.nii.gz ;; *) cp "$1" brain.nii.gz ;; esac'
    command = f"{with_program(tmp_path / 'programs', text)}/strip {{input}}"
    ended = project.fails("participants", tool=own_tool(command=command))
    (line,) = ended.lines("failed  sub-nothing: ")
    assert f"{t1w('nothing')}: own wrote no brain.nii.gz, although its exit code is 0" in line
    (line,) = ended.lines("failed  sub-grid: ")
    assert f"{t1w('grid')}: the mask of own is on another grid than the image ((10, 20, 20) and (20, 20, 20))" in line
    ended.says("1 of 3 participants done, 2 failed")
    assert project.leftovers() == []


def test_another_command_script_or_release_of_the_program_is_another_analysis_and_more_cores_are_none(
    project: Project, tmp_path: Path
) -> None:
    """Who comes to the dataset later is not said to be made with the release of before."""
    project.heads("01")
    program, page = with_program(tmp_path / "programs"), tmp_path / "own script.sh"
    page.write_text('echo "$@"')
    command = f"strip {{input}} {{output}} '{page}'"
    project.succeeds("participants", path=program, tool=own_tool(command=command))
    before = project.record("sub-01")["tool_version"]
    assert before.startswith("sha256:")
    project.fails("participants", path=program, tool=own_tool(command="strip {input} {output}")).says(
        f"analysed with command {command}"
    )
    more = own_tool(command=command, threads=2, memory_mb=100)
    project.succeeds("participants", path=program, tool=more).says("Nothing to be done")
    page.write_text('echo edited "$@"')
    project.fails("participants", path=program).says("1 participant analysed with content of the command's files ")
    page.write_text('echo "$@"')
    with_program(tmp_path / "programs", f"{STRIP}# another release")
    project.heads("02")
    ended = project.fails("participants", "--forcerun", "index_dataset", path=program)
    (line,) = ended.lines("failed  sub-02: tool 'own': its version is sha256:")
    assert f"the results are made with {before}; load {before} again" in line, line
    again = project.succeeds("participants", "--forcerun", "prepare_tool", path=program)
    assert again.analysed == ["sub-01", "sub-02"], again.output
    assert project.record("sub-01")["tool_version"] == project.record("sub-02")["tool_version"] != before


@pytest.mark.parametrize("switches", [(), ("--sdm", "apptainer")], ids=["host", "image"])
def test_a_program_that_is_not_there_is_said_before_anyone_is_analysed(
    project: Project, tiny_image: Path, switches: tuple[str, ...]
) -> None:
    project.heads("01")
    own = {"command": "nowhere {input}", "mask": "mask.nii.gz", "image": tiny_image}
    ended = project.fails("participants", *switches, tool={"name": "own", "own": own})
    ended.says("own: the image has no program nowhere" if switches else "tool 'own': nowhere is not on PATH")
    assert ended.analysed == []


@pytest.mark.nightly
def test_median_otsu_of_dipy_has_the_voxels_of_a_direct_call(
    project: Project, whole_head: Path, tmp_path: Path
) -> None:
    """On every fourth voxel of a real head, which takes it a second."""
    if importlib.util.find_spec("dipy") is None:
        missing("DIPY is not installed (tests/set_up.sh does that)")
    image = project.heads("01") / t1w("01")
    nib.save(nib.load(whole_head).slicer[::4, ::4, ::4], image)
    project.configure()
    project.succeeds("participants", "--configfile", "config/examples/median-otsu.yaml", "own.yaml")
    command = ["dipy_median_otsu", str(image), "--out_dir", str(tmp_path), "--out_mask", "direct.nii.gz"]
    system(*command, env=ENVIRONMENT)
    there = Project(project.folder, results_name="results-median-otsu")
    (mask,) = there.derivatives.rglob("*_mask.nii.gz")
    made, direct = nib.load(mask), nib.load(tmp_path / "direct.nii.gz")
    voxels = np.asanyarray(made.dataobj)
    assert voxels.tobytes() == np.asanyarray(direct.dataobj).astype(np.uint8).tobytes()
    assert np.array_equal(made.affine, direct.affine)
    assert 0.05 < voxels.mean() < 0.95
    record = there.record("sub-01")
    assert record["tool_version"] == f"DIPY {importlib.metadata.version('dipy')}"
    assert record["images"][0]["brain_voxels"] == voxels.sum()
