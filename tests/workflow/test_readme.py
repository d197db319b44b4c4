"""The READMEs are right: commands run, in the order in which a reader would run them; links and names lead somewhere.

What cannot be had here is planned only, or replaced by something local (:data:`ELSEWHERE`, :data:`LOCAL`). Those of
the first README are planned, and some run; each night all others run. What takes minutes is shortened
(:data:`QUICK`, :data:`SHORTER`), but for the first command, the demonstration: ``test_main_job.py`` has all of its
participants each time, and the night runs it as everyone does. One that several READMEs give is run once.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from conftest import nightly, too_long
from published_logs import write_checkout
from readmes import DEMONSTRATION, DOCUMENTS, LINES, README, commands
from support import (
    ROOT,
    Project,
    committed,
    datalad,
    link_images,
    plain_dataset,
    private_folder,
    save_image,
    small_head,
    t1w,
)

WORDS = {"": 1100, "config": 3000, "config/examples": 3000, "profiles": 1800, "workflow": 2500, "containers": 900}
"""Most words of the READMEs that users read."""

APPS = ("mriqc.yaml", "fmriprep.yaml")
"""Apps whose images cannot be pulled here: ``test_apps.py`` runs them with stand-ins."""

PROGRAMS = ("hd-bet.yaml", "synthstrip.yaml", "median-otsu.yaml")
"""Programs that are not here, or in one environment only: ``test_programs.py`` runs what can be had."""

ELSEWHERE = (
    *(*APPS, *PROGRAMS),
    *("corr.yaml", "folder.yaml", "paper-memory-storage", "profiles/slurm", "source: bigbrain-datalad"),
)
"""Runs over data and clusters that are not here are planned only; other tests run what can be had of them.

What stands for data that must be there is made by :func:`reader`.
"""

BLOCKS = "https://github.com/conpdatasets/bigbrain-datalad"
LOCAL = {BLOCKS: "blocks-dataset", "/data/study": "study"}
"""Part of a command to what stands for it here: a DataLad dataset of three small blocks, a folder of two heads."""

QUICK = ["demo={voxel_size_mm: 4.0, seed: 7}", "tool={brainextractor: {iterations: 15}}"]
"""What all commands of Snakemake are given, so that they agree on what is there."""

NO_ANALYSIS = ["tool={name: noop}"]
ONE = "dataset={participants: [sub-0099001]}"
NO_ANALYSIS_OF_ONE = [*NO_ANALYSIS, ONE]
SHORT_PROBE = ["--config", "probe={time_s: 1, file_mib: 16, repetitions: 1}"]
SHORTER = {
    f"{DEMONSTRATION}\n": ["--config", ONE],
    "campaign.yaml": [
        *("--config", "campaign={repetitions: 1, parallelism: [1]}", *NO_ANALYSIS, ONE),
    ],
    **dict.fromkeys(("snakemake probe", "snakemake advise"), SHORT_PROBE),
    "bigbrain.yaml": [
        *SHORT_PROBE,
        "probe={tiers: [tmpfs]}",
        "bigbrain={count: 2, iterations: 1, tiers: [tmpfs], engines: [gnu-parallel]}",
    ],
    "sweep-blocks.yaml": [
        *("--config", "sweep={tiers: [tmpfs]}"),
        "sweep={sets: {blocks: {block_sizes: [4 KiB], processes: [1], patterns: [read], seconds: 0.1}}}",
    ],
    "daq.yaml": ["--config", "daq={tiers: [tmpfs], together: [], writers: [1], seconds: 0.2}"],
    "ior.yaml": ["--config", "ior={tiers: [tmpfs], processes: [1], file_size: 1 MiB, repetitions: 1}"],
    "staging.yaml": [
        *("--config", "staging={engines: [adios2-bp5], steps: 1, tiers: [tmpfs]}"),
        *(f"staging={{sets: {{{name}: {{writers: [1], readers: [1]}}}}}}" for name in ("servers", "strong", "weak")),
    ],
    "bids-app.yaml": ["--config", 'app={arguments: [--skip_bids_validator, --iterations, "50"]}', ONE],
    "results-apptainer": [ONE],
    "folder.yaml": ["--config", "dataset={source: study}", "tiers={data: {path: ., kind: block}}"],
    **dict.fromkeys(("results-tmpfs", "results-25"), NO_ANALYSIS_OF_ONE),
    **dict.fromkeys(("results=part", "results=one", "results=mine"), NO_ANALYSIS),
}
"""Words added to a line, whose ``--config`` is last."""


def prose(file: Path) -> str:
    """A document without its blocks."""
    return re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)


def name(value: Path | str) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else value


@pytest.fixture(scope="module")
def reader(lasting: Project, demo_source: Path) -> Project:
    """Someone with a clone, the demonstration dataset that the workflow has made, a BIDS folder, published logs, and a
    DataLad dataset in place of BigBrain's own.
    """
    shutil.copytree(demo_source, private_folder(lasting.folder) / "datasets" / demo_source.name, symlinks=True)
    plain_dataset(lasting.folder / "study", {t1w("01"): small_head(), t1w("02"): small_head(1)})
    write_checkout(lasting.folder / "paper-memory-storage")
    (lasting.folder / "license.txt").write_text("me@example.org\n")
    (lasting.folder / "fmriprep-filter.json").write_text("{}")
    (lasting.folder / "templateflow").mkdir()
    dataset = lasting.folder / LOCAL[BLOCKS]
    for number in range(3):
        save_image(dataset / f"FOLDER/block_{number}.nii", small_head(number))
    committed(dataset, annexed=True)
    return lasting


def follow(reader: Project, line: str, planned: bool) -> None:
    """Run a command, or have Snakemake plan it."""
    for elsewhere, here in LOCAL.items():
        line = line.replace(elsewhere, here)
    program, *arguments = shlex.split(line)
    if program == "make":
        assert re.search(rf"^{arguments[0]}: ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif program == "source":
        assert arguments == [".venv/bin/activate"]
    elif program == "neurotier":
        reader.neurotier(*arguments).succeeded()
    elif program == "datalad":
        if arguments[0] == "clone":
            arguments.append("bigbrain-datalad")  # the URL's last part, by which DataLad calls the clone
        datalad(reader.folder, *arguments)
    else:
        assert program == "snakemake"
        words = ["--dry-run", *arguments] if planned else arguments
        words += [word for part, shorter in SHORTER.items() if part in f"{line}\n" for word in shorter]
        words += [*["--config"] * ("--config" not in words), *QUICK]
        (reader.snakemake(*words, cores=0) if planned else reader.ended([program, *words])).succeeded()


SOON = [
    *(line for line in LINES if line in commands(README) or not line.startswith("snakemake")),
    next(line for line in LINES if "profile: copying.yaml" in line),
]
"""Commands that are planned or run at once; of the others, unit/test_settings.py reads what they ask for."""

RUN_SOON = {DEMONSTRATION, SOON[-1]}
"""What is run each time of Snakemake's commands: others go on with what the first has made."""


def is_elsewhere(line: str) -> bool:
    return any(part in line for part in ELSEWHERE)


LATER = [line for line in LINES if line.startswith("snakemake") and line not in RUN_SOON]
LATER = [line for line in LATER if line not in SOON or not is_elsewhere(line)]
IN_IMAGES = [line for line in LATER if "--sdm apptainer" in line and not is_elsewhere(line)]
"""Those that run one of ``containers/``, which takes minutes to build, and are drawn together."""

EARLIER = {
    "--report": ("results/report.html", DEMONSTRATION),
    "bigbrain-datalad": ("bigbrain-datalad", next(line for line in LINES if line.startswith("datalad clone"))),
}
"""What the reader has done before some commands, and the file by which that is seen."""

NIGHTLY = [*nightly(*(line for line in LATER if line not in IN_IMAGES)), *nightly(*IN_IMAGES, mark=too_long)]


@pytest.mark.parametrize("line", SOON, ids=str)
def test_command_is_right(reader: Project, line: str) -> None:
    follow(reader, line, planned=line not in RUN_SOON)


@pytest.mark.parametrize("line", NIGHTLY, ids=str)
def test_command_runs(reader: Project, line: str, request: pytest.FixtureRequest) -> None:
    """Images are built before; the store knows them by what is in them."""
    for part, earlier in EARLIER.items():
        if part in line and not (reader.folder / earlier[0]).exists():
            follow(reader, earlier[1], planned=False)
    if line in IN_IMAGES:
        link_images(request.getfixturevalue("app_image" if "bids-app.yaml" in line else "brain_image"), reader)
    follow(reader, line, is_elsewhere(line))


@too_long
def test_the_demonstration_runs_as_everyone_runs_it(project: Project) -> None:
    project.succeeds(*shlex.split(DEMONSTRATION)[1:], cores=0)


def test_demonstration_is_the_command_of_the_makefile() -> None:
    assert re.findall(r"^DEMO := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE) == [DEMONSTRATION]


def test_every_profile_is_described_and_plans(reader: Project) -> None:
    lines = "\n".join(line for file in DOCUMENTS for line in commands(file))
    for profile in sorted(file.parent for file in (ROOT / "profiles").glob("*/profile.yaml")):
        assert f"`profiles/{profile.name}`" in (ROOT / "profiles/README.md").read_text()
        if not re.search(rf"profiles/{profile.name}\b(?!-)", lines):  # the others are in a command above
            given = ["--dry-run", "--quiet", "--config", "results=planned"]
            reader.succeeds("--workflow-profile", f"profiles/{profile.name}", *given)


def test_every_example_is_described() -> None:
    described = (ROOT / "config/examples/README.md").read_text()
    assert all(f"`{file.name}`" in described for file in (ROOT / "config/examples").glob("*.yaml"))


def anchors(file: Path) -> set[str]:
    """The anchors of a document's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", prose(file), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(document)):
        file, _, anchor = target.partition("#")
        if file.startswith("https:"):
            continue
        linked = (document.parent / file).resolve() if file else document
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_named_files_are_there(document: Path) -> None:
    """By the end of their path: READMEs name files from where they stand. Names in capitals stand for others."""
    tops = [ROOT / folder for folder in ("config", "containers", "profiles", "tests", "workflow")]
    files = [*ROOT.iterdir(), *itertools.chain.from_iterable(top.rglob("*") for top in tops)]
    there = [f"/{name(file)}" for file in files]
    words = re.findall(r"`([^`\s]+)`", prose(document))
    named = [word for word in words if re.search(r"\.(py|smk|def|sh|lock|cff|md)$|\.schema\.yaml$", word)]
    named += [word for word in words if re.match(r"(config|containers|profiles|tests|workflow|neurotier)/", word)]
    for word in named:
        literal = word.rstrip("/").rpartition("/PAGE")[0] if "PAGE" in word else word.rstrip("/")
        assert any(path.endswith(f"/{literal}") for path in there), word


def test_rooms_are_those_of_the_library() -> None:
    text = (ROOT / "workflow/README.md").read_text().partition("## Rooms")[2].partition("## ")[0]
    rooms = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    assert sorted(rooms) == sorted(file.parent.name for file in (ROOT / "workflow/neurotier").glob("*/__init__.py"))


def test_named_targets_exist(reader: Project) -> None:
    rules = reader.succeeds("--list-target-rules").output.split()
    makefile = (ROOT / "Makefile").read_text()
    table = README.read_text().partition("## Targets")[2].partition("## ")[0]
    targets = re.findall(r"^- `(\w+)`", table, re.MULTILINE)
    assert targets
    assert not set(targets).difference(rules)
    listed = reader.neurotier().output.partition("commands:")[0]
    assert re.findall(r"^  (\w+)  ", listed, re.MULTILINE) == targets
    for document in DOCUMENTS:
        made = re.findall(r"`make ([a-z-]+)", document.read_text())
        assert all(re.search(rf"^{target}: ", makefile, re.MULTILINE) for target in made), document


@pytest.mark.parametrize("folder", WORDS)
def test_readmes_are_short(folder: str) -> None:
    assert len((ROOT / folder / "README.md").read_text().split()) <= WORDS[folder]


def test_there_is_one_picture() -> None:
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", "".join(document.read_text() for document in DOCUMENTS))
    assert (ROOT / picture).stat().st_size < 300_000


def test_citation_is_of_this_version(reader: Project) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert reader.neurotier("--version").output == f"neurotier {citation['version']}\n"
    assert citation["references"][0]["title"] in README.read_text().replace("\n", " ")
