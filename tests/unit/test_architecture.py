"""The house keeps its order: rule = script = log folder, captions are used, files have one subject, and what starts
often imports little: the meter and the participant job load no library of the tables and pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import KNOWN, run_protected
from neurotier.core.configuration import WORKLOADS
from neurotier.core.places import file_of
from neurotier.core.processes import THREADS
from neurotier.core.tables import columns, write_plain
from neurotier.pages import PAGES
from page_reader import read
from planted_bugs import BUGS, copy_of_checkout
from pool_jobs import prepared_results
from support import ENVIRONMENT, JOB_ENVIRONMENT, ROOT, SNAKEMAKE, Project

RULES = {file.stem: file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk")}


def rules() -> dict[str, str]:
    """Rule name to its text, but for those that a loop makes."""
    found = {}
    for text in RULES.values():
        for part in re.split(r"^(?= *(?:rule|checkpoint|for) )", text, flags=re.MULTILINE):
            if name := re.match(r" *(?:rule|checkpoint) (\w+)", part):
                found[name[1]] = part
    return found


def test_scripts_log_folders_and_captions_are_named_like_their_rules() -> None:
    in_loops = {"write_page", "run_workload", "run_engine"}
    used: dict[str, set[str]] = {"scripts": in_loops, "report": {"workflow"}}
    for name, text in rules().items():
        assert re.search(rf'LOGS\s*/\s*"{name}/', text), name
        files = re.findall(r'"\.\./(scripts|report)/(\w+)\.(?:py|rst)"', text)
        assert set(files) <= {("scripts", name), ("report", name)}
        assert (("scripts", name) in files) != ("shell:" in text), name
        for folder, file in files:
            used[folder].add(file)
    for folder, names in used.items():
        files_there = (ROOT / "workflow" / folder).iterdir()
        assert names == {file.stem for file in files_there if file.suffix in (".py", ".rst")}, folder


TESTS = ROOT / "tests"
REFEREE = [*TESTS.glob("hostile/*.py"), *TESTS.glob("workflow/*.py"), *TESTS.glob("faults/*.py")]
REFEREE += [TESTS / f"{name}.py" for name in ("same_outputs", "planted_bugs")]
"""What judges any version of the library by commands, exit codes, files, the terminal and processes."""

KNOWN_TO_THE_REFEREE = {"neurotier.core.errors", "neurotier.core.places"}


def test_the_referee_knows_no_insides() -> None:
    """Neither do the modules of ``tests/`` that it uses, nor programs that it writes."""
    files, seen = [*REFEREE], set(REFEREE)
    for file in files:
        text = file.read_text()
        assert set(re.findall(r"(?:from|import) (neurotier[\w.]*)", text)) <= KNOWN_TO_THE_REFEREE, file
        named = re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE)
        used = {module for name in named if (module := TESTS / f"{name}.py").exists()} - seen
        files += used
        seen |= used
    assert TESTS / "support.py" in seen


def test_mutants_that_change_nothing_are_of_lines_that_exist() -> None:
    for known in KNOWN:
        file, _, mutant = known.partition(": ")
        lines = (ROOT / "workflow/neurotier" / file).read_text().splitlines()
        exists = any(line.strip() and mutant.startswith(f"{line.strip()}:") for line in lines)
        assert exists, f"KNOWN in tests/mutants.py has a line that is no longer in the file: {known}"


def test_a_mutant_deletes_nothing_but_what_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "of_another").touch()
    alone = f"test -w /tmp && test -w /var/tmp && test -w $HOME && test ! -w {ROOT} && test ! -e {tmp_path}"
    assert run_protected(["sh", "-c", f"rm -r {tmp_path}; {alone}"]) == 0
    assert (tmp_path / "of_another").exists()


def test_the_text_that_a_planted_bug_replaces_is_there_once() -> None:
    counts = {bug.name: (ROOT / "workflow" / bug.file).read_text().count(bug.old) for bug in BUGS}
    assert counts == dict.fromkeys(counts, 1), "BUGS in tests/planted_bugs.py has a text that is not there once"


def test_rules_that_go_to_a_cluster_are_there_and_each_has_a_job_that_tries_the_cluster() -> None:
    snakefile, trial = (ROOT / "workflow/Snakefile").read_text(), (ROOT / "profiles/try.smk").read_text()
    listed = snakefile[snakefile.index("internals.run_locally_except(") :].partition(")\n")[0]
    elsewhere = re.findall(r'"(\w+)"', listed)
    assert "analyze_participants" in elsewhere
    assert sorted(elsewhere) == sorted(re.findall(r'"(\w+)"', trial.partition("]")[0]))
    in_loops = {*(f"write_{page}" for page in PAGES), *(f"run_{workload}" for workload in WORKLOADS)}
    assert {f"run_{workload}" for workload in WORKLOADS} <= set(elsewhere) <= {*rules(), *in_loops}


TOUCHED = re.compile(r"(?<![\w./\"'-])workflow\.\w+|(?<=from )snakemake\.\w+|(?<=import )snakemake\.\w+")
"""What a file uses of Snakemake: attributes of ``workflow``, and modules."""


def test_snakemakes_internals_are_used_in_one_file_only() -> None:
    documented = {"workflow.cores", "workflow.basedir", "snakemake.utils", "snakemake.exceptions"}
    library = ROOT / "workflow/neurotier"
    internals = library / "run/snakemake_internals.py"
    files = [ROOT / "workflow/Snakefile", *ROOT.glob("workflow/rules/*.smk"), *ROOT.glob("workflow/scripts/*.py")]
    for file in {*files, *library.rglob("*.py")} - {internals}:
        assert set(TOUCHED.findall(file.read_text())) <= documented, file
    assert {"workflow.global_resources", "snakemake.cli"} <= set(TOUCHED.findall(internals.read_text()))


def test_nothing_names_a_place_of_this_machine() -> None:
    folders = ("workflow/**/*.*", "config/**/*", "profiles/**/*")
    for file in [*ROOT.glob("*.*"), *(file for folder in folders for file in ROOT.glob(folder))]:
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".lock":
            text = file.read_text(errors="replace")
            assert str(ROOT) not in text, file
            assert "/root/" not in text, file


def test_rules_are_read_without_what_their_jobs_load(project: Project) -> None:
    """Every start of Snakemake reads them: SciPy and Matplotlib were half of its time."""
    ended = project.run("-X", "importtime", "-m", "snakemake", "--list-rules")
    assert ended.code == 0, ended.output
    loaded = set(re.findall(r"^import time: .*\| +([\w.]+)$", ended.output, re.MULTILINE))
    assert "neurotier.core.settings" in loaded
    assert loaded & {"bids", "datalad.api", "matplotlib", "nibabel", "nilearn", "scipy"} == set()


PAGE = '''
from neurotier.pages.kit.marks import Lanes, Points
from neurotier.pages.kit.page import Figure, Page, Verdict

def speeds(data):
    """How fast."""
    rows = [{"lane": row["tier"], "speed": row["processes"]} for row in data["sweep"]]
    return Lanes("All are drawn", rows, marks=[Points("speed")])

verdicts = lambda data: [Verdict("All is well")]
PAGE = Page("added", "Added", "What is added.", verdicts, [Figure("Speeds", speeds)], ["sweep/sweep"])
'''


def test_a_page_is_a_file_and_its_name_and_a_figure_a_function_and_its_heading() -> None:
    """The one rule of pages makes them, in a copy to which they are added."""
    with copy_of_checkout() as copy:
        pages, results = copy / "workflow/neurotier/pages", copy / "results"
        (pages / "added.py").write_text(PAGE)
        listed = (pages / "__init__.py").read_text()
        (pages / "__init__.py").write_text(listed.replace("PAGES = (", 'PAGES = ("added", '))
        rows = [dict.fromkeys(columns("sweep")) | {"tier": "local", "set": "a", "processes": 2, "status": "failed"}]
        write_plain(results / "sweep/sweep.tsv", rows)
        command = [*SNAKEMAKE, "--cores=1", "results/added.html"]
        environment = ENVIRONMENT | {"PYTHONPATH": str(copy / "workflow")}
        subprocess.run(command, cwd=copy, env=environment, check=True)
        page = read(results / "added.html")
        assert "Speeds How fast." in page.text
        assert any("All are drawn" in alternative for alternative in page.alts)
        assert (results / "added/figures/speeds.png").exists()


REPORTING = {"pandas", "matplotlib", "jinja2", "jsonschema"}
SLOW = REPORTING | {"scipy", "numpy", "nibabel", "snakemake", "bids", "datalad"}
"""Libraries that take more than 0.05 s to import; the job needs some of them, but only in its phases."""


SCRIPTS = {
    ("neurotier.__main__", "neurotier.meter.command"): SLOW | {"psutil", "humanfriendly", "yaml"},
    ("neurotier.analysis.tools", "neurotier.analysis.brains"): REPORTING,
}
"""Modules of the meter, and of the phases of a participant job, to what they do without."""


@pytest.mark.parametrize(("modules", "unloaded"), SCRIPTS.items())
def test_what_starts_often_imports_little(modules: tuple[str, ...], unloaded: set[str]) -> None:
    """In a new Python."""
    show = f"import sys, {', '.join(modules)}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.check_output([sys.executable, "-c", show], text=True).split()
    assert not unloaded.intersection(loaded)


def test_a_job_of_noop_loads_no_library_but_psutil(tmp_path: Path) -> None:
    """From start to end, phases included: each of thousands of jobs would pay for it."""
    results = prepared_results(tmp_path, ["01"])
    words = ["analyze-participants", "--only", "sub-01", "--results", str(results), "--log", str(tmp_path / "log")]
    command = [sys.executable, "-X", "importtime", "-m", "neurotier", *words]
    done = subprocess.run(command, env=JOB_ENVIRONMENT, capture_output=True, text=True, check=True)
    assert file_of(results / "profile/records", "sub-01").exists()
    loaded = set(re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "neurotier.analysis.tools" in loaded
    assert not {name.partition(".")[0] for name in loaded} & (SLOW | {"humanfriendly", "yaml"})
    assert not loaded & {"csv", "neurotier.core.tables"}


def printed_by(code: str, **environment: str) -> str:
    """What a new Python prints, in an environment without the variables in question."""
    unset = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", *THREADS}
    own = {name: value for name, value in JOB_ENVIRONMENT.items() if name not in unset}
    return subprocess.check_output([sys.executable, "-c", code], env=own | environment, text=True)


def test_jobs_find_bytecode_even_if_python_shall_write_none(tmp_path: Path) -> None:
    code = "from neurotier.run.head import compile_library; compile_library()"
    printed_by(code, PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(tmp_path))
    compiled = {file.name.partition(".")[0] for file in tmp_path.rglob("neurotier/**/*.pyc")}
    assert compiled >= {file.stem for file in (ROOT / "workflow/neurotier").rglob("*.py")}


@pytest.mark.parametrize(
    ("asked", "given"), [({}, "1"), ({"OMP_NUM_THREADS": "3"}, "None"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")]
)
def test_a_start_uses_one_blas_thread_unless_asked(asked: dict[str, str], given: str) -> None:
    code = "from neurotier.run.head import make_importable; make_importable()\nimport os\n"
    assert printed_by(f"{code}print(os.environ.get('OPENBLAS_NUM_THREADS'))", **asked).strip() == given
