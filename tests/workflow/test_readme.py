"""Every command of the READMEs runs, in the order in which a reader would run them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support import ROOT, Project

DOCUMENTS = [ROOT / "README.md", ROOT / "config" / "README.md", ROOT / "containers" / "README.md"]

ELSEWHERE = ("corr.yaml", "folder.yaml", "paper-memory-storage", "profiles/slurm")
"""Examples over data and clusters that are not here are planned only."""

FEWER_STEPS = ["tool={brainextractor: {iterations: 50}}"]
SHORT_PROBE = ["--config", "probe={time_s: 5, file_mib: 16, repetitions: 1}"]
SHORTER = {
    "campaign.yaml": ["--config", "campaign={repetitions: 1, parallelism: [2]}"],
    **dict.fromkeys(("snakemake probe", "snakemake advise"), SHORT_PROBE),
    "sweep-blocks.yaml": ["--config", "sweep={sets: {blocks: {processes: [1], patterns: [read], seconds: 0.1}}}"],
    "bids-app.yaml": ["--config", 'app={arguments: [--skip_bids_validator, --iterations, "50"]}'],
    **dict.fromkeys(("results-tmpfs", "results-25", "results-apptainer", "results=part", "results=one"), FEWER_STEPS),
}
"""What takes minutes is run in part, but for the first command: words added to a line, whose ``--config`` is last."""


def commands(file: Path) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, brain_image: Path) -> Project:
    """A reader who has built the default image before; the store tells it by what it was built from."""
    project = Project.at(tmp_path_factory.mktemp("reader") / "project")
    store = project.folder / brain_image.parents[1].name
    store.mkdir()
    shutil.copytree(brain_image.parent, store / brain_image.parent.name, copy_function=os.link)
    return project


@pytest.mark.parametrize("line", [line for document in DOCUMENTS for line in commands(document)])
def test_command(reader: Project, line: str) -> None:
    program, *arguments = shlex.split(line)
    if program == "make":
        assert re.search(rf"^{arguments[0]}: ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif program == "source":
        assert arguments == [".venv/bin/activate"]
    elif program == "neurotier":
        ended = reader.run("-m", "neurotier", *arguments)
        assert ended.code == 0, ended.output
    else:
        assert program == "snakemake"
        planned = [*arguments, "--dry-run"] if any(name in line for name in ELSEWHERE) else arguments
        planned += [word for name, words in SHORTER.items() if name in line for word in words]
        if "--report" in arguments:
            planned += ["--cores", "1"]
        ended = reader.run("-m", "snakemake", *planned)
        assert ended.code == 0, ended.output


def test_demonstration_is_the_command_of_the_makefile() -> None:
    (demo,) = re.findall(r"^DEMO := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert demo in commands(ROOT / "README.md")


def test_every_profile_is_described_and_plans(reader: Project) -> None:
    for profile in sorted((ROOT / "profiles").iterdir()):
        assert profile.name == "default" or f"`profiles/{profile.name}`" in (ROOT / "README.md").read_text()
        ended = reader.snakemake("--workflow-profile", f"profiles/{profile.name}", "--dry-run", "--quiet")
        assert ended.code == 0, ended.output
