"""What the tests share: real heads, small BIDS datasets, and a working folder from which Snakemake is run.

``tests/run.sh`` has a few workers (pytest-xdist), which are processes and share slow-to-make things through
:func:`support.once`; :func:`pytest_collection_modifyitems` says what each worker gets. A test that measures the
machine, or changes it for all, is marked ``alone``.
"""

from __future__ import annotations

import datetime
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import cpu_seconds  # noqa: E402
from container_images import Engine, make_tiny  # noqa: E402
from support import DEBIAN_HEAD, ENVIRONMENT, SHARED, Project, link_images, make_demo, once, system, wait_for  # noqa: E402

REQUIRE_ALL = bool(os.environ.get("NEUROTIER_REQUIRE_ALL"))


RINGS = ("fast", "nightly", "all")
DAY = "NEUROTIER_TEST_DAY"
"""Environment variable with the day's number, which all workers use even if midnight comes in between."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ring", choices=RINGS, default="all", help="which tests of those that are named")


def pytest_configure(config: pytest.Config) -> None:
    """Count CPU seconds, and heed Ctrl-C, which tests try: who is started in the background of a script ignores it, and
    so do all children."""
    config.pluginmanager.register(cpu_seconds)
    os.environ.setdefault(DAY, str(datetime.date.today().toordinal()))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = ("test_readme", "test_stops", "test_in_containers", "test_slurm", "test_main_job", "test_faults")
"""Files that take longest, in order: begun last, they would keep one worker busy when the others have ended."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the ring that is asked for, say what one worker does in a row (pytest-xdist's groups), and have what takes
    long come first.

    A file is such a group; of runs of the whole workflow, only the tests that share something that is made for their
    file. All that needs Spark is one group: two of its engines at once are slower than one after the other.
    """
    for item in items:
        if needs_spark(item):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.path.parent.name != "workflow" or shares_with_its_file(item):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(ROOT))))
    chosen = ring_of(config.getoption("ring"), items)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = sorted(chosen, key=place_of)


DRAWN = 2
"""How many nightly tests the fast ring runs each day; none of them takes more than some 30 CPU s."""

LONG = "long"
"""Word in the mark of nightly tests that are not drawn: each takes a minute of CPU time, or an image that does."""


def ring_of(ring: str, items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of a ring: those marked nightly in that ring, and a few of them, by the date, in the fast one, too."""
    nightly = {item: mark for item in items if (mark := item.get_closest_marker("nightly"))}
    if ring != "fast":
        return [item for item in items if ring == "all" or item in nightly]
    short = [item for item, mark in nightly.items() if LONG not in mark.args]
    short.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
    first = DRAWN * int(os.environ[DAY])
    drawn = [short[number % len(short)] for number in range(first, first + DRAWN)] if short else []
    return [item for item in items if item not in nightly or item in drawn]


def needs_spark(item: pytest.Item) -> bool:
    """Whether a test needs Spark, through a fixture or a parameter; false if it needs the one Slurm cluster."""
    if "cluster" in getattr(item, "fixturenames", ()):
        return False
    asked = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "spark" in getattr(item, "fixturenames", ()) or any(isinstance(one, str) and one == "spark" for one in asked)


def shares_with_its_file(item: pytest.Item) -> bool:
    """Whether a test has a fixture that is made once per file; pytest has no documented way to tell."""
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    return any(definition.scope == "module" for definitions in fixtures for definition in definitions)


def place_of(item: pytest.Item) -> int:
    """Position of a test: Spark's, the longest files, further runs of the whole workflow, all others."""
    if needs_spark(item):
        return 0
    if item.path.stem in LONGEST:
        return 1 + LONGEST.index(item.path.stem)
    return 1 + len(LONGEST) + (item.path.parent.name != "workflow")


def nightly(*cases: Any, mark: pytest.MarkDecorator = pytest.mark.nightly) -> list[Any]:
    """Parameters of a test that are tried in the nightly ring."""
    each = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=mark) for case in each]


too_long = pytest.mark.nightly(LONG)


QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile quickly rather than well: a Spark that lives for seconds takes half the CPU time with it."""


def missing(reason: str) -> None:
    """Skip, or fail if every real component is required."""
    if REQUIRE_ALL:
        pytest.fail(f"{reason} is required here (NEUROTIER_REQUIRE_ALL)")
    pytest.skip(reason)


def need(program: str, package: str) -> str:
    """The path of a program; if it is missing, as :func:`missing`."""
    if (found := shutil.which(program, path=ENVIRONMENT["PATH"])) is None:
        missing(f"{package} is not installed")
    return found or ""


def missing_data(reason: str) -> None:
    """Skip, or fail if every real component is required and there is a folder of shared data."""
    if SHARED.is_dir():
        missing(reason)
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """Undo whatever a test does to the environment of this process."""
    with patch.dict(os.environ):
        yield


@pytest.fixture(scope="session")
def reference() -> Path:
    """Logs of the 2020 paper."""
    folder = SHARED / "reference/published-runs"
    if not folder.is_dir():
        missing_data(f"no published logs in {folder}")
    return folder


@pytest.fixture(scope="session")
def whole_head() -> Path:
    """A real whole head: ch2 (Colin27) from Debian's mricron-data."""
    if not DEBIAN_HEAD.exists():
        missing("Debian's mricron-data is not installed")
    return DEBIAN_HEAD


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A working folder with the workflow in it, as in a clone."""
    return Project.at(tmp_path / "project")


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One working folder for all tests of a file."""
    return Project.at(tmp_path_factory.mktemp("lasting") / "project")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all workers share; their own folders lie in it."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def demo_source(shared: Path) -> Path:
    """The demonstration dataset at 4 mm, for cloning; nobody writes to it."""
    return once(shared / "source", make_demo)


@pytest.fixture
def demo_copy(demo_source: Path, tmp_path: Path) -> Path:
    """A copy of the demonstration dataset that a test may damage."""
    copy = tmp_path / "source"
    shutil.copytree(demo_source, copy, symlinks=True)
    return copy


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The real container engine, if the kernel permits using it."""
    found = need("apptainer", "Apptainer")
    tried = subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True, text=True)
    if tried.returncode:
        missing(f"user namespaces are not allowed here ({tried.stderr.strip()})")
    return Engine(found)


@pytest.fixture(scope="session")
def tiny_image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of some 2 MB with a shell and its commands."""
    need("busybox", "Debian's busybox-static")
    return make_tiny(engine, tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def brain_image(engine: Engine, shared: Path) -> Path:
    """The image of ``containers/brainextractor.def``, built by the rule that does so for users; a minute."""
    return once(shared / "images", lambda folder: obtained_image(Project.at(folder / "project"), "brainextractor"))


@pytest.fixture(scope="session")
def app_image(brain_image: Path, shared: Path) -> Path:
    """The image of ``containers/bids-app-example.def``, built likewise, on the one above, which lies beside it."""

    def build(folder: Path) -> Path:
        project = Project.at(folder / "project")
        link_images(brain_image, project)
        return obtained_image(project, "bids-app-example", app={"image": "containers/bids-app-example.def"})

    return once(shared / "app-images", build)


def obtained_image(project: Project, name: str, **sections: Any) -> Path:
    """The image that a project's rule has obtained; not unpacked, which is for those who run it."""
    project.succeeds("results/index/image.json", "--sdm", "apptainer", **sections, containers={"form": "sif"})
    (image,) = project.folder.glob(f"neurotier-*/image-store/{name}-*.sif")
    return image


@pytest.fixture(scope="session")
def datalad_container() -> None:
    """Real datalad-container, which makes container datasets."""
    tried = [sys.executable, "-c", "import datalad_container"]
    if subprocess.run(tried, env=ENVIRONMENT, capture_output=True).returncode:
        missing("datalad-container is not installed")


@pytest.fixture(scope="session")
def gnu_parallel() -> None:
    """Real GNU parallel."""
    need("parallel", "Debian's parallel")


@pytest.fixture(scope="session")
def numactl() -> None:
    """Real numactl that may bind here: some containers forbid it."""
    need("numactl", "Debian's numactl")
    tried = subprocess.run(["numactl", "--cpunodebind=0", "--membind=0", "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"numactl cannot bind on this kernel: {tried.stderr.strip()}")


@pytest.fixture(scope="session")
def spark() -> None:
    """Real Spark: PySpark, and Java for it."""
    need_package("pyspark")
    need("java", "Java (Debian: default-jre-headless)")
    os.environ["JAVA_TOOL_OPTIONS"] = ENVIRONMENT["JAVA_TOOL_OPTIONS"] = QUICK_JAVA


@pytest.fixture(scope="session")
def staging_engines() -> None:
    """Real Ray and ADIOS2."""
    need_package("ray")
    need_package("adios2")


def need_package(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        missing(f"{name} is not installed (tests/set_up.sh does that)")


@pytest.fixture
def able() -> Iterator[Path]:
    """A folder for a fault campaign, on a machine that can hold one."""
    from faults.campaign import MissingError, base_folder, check_able

    with base_folder() as folder:
        try:
            check_able(folder)
        except MissingError as error:
            missing(str(error))
        yield folder


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder in memory."""
    with tempfile.TemporaryDirectory(prefix="neurotier-test-", dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def memory(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> Path:
    """A tmpfs of 16 MiB."""
    return mount_tmpfs(tmp_path / "memory", "size=16m")


@pytest.fixture
def control_group() -> Iterator[Path]:
    """A control group of version 2, as batch systems and containers give a job."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if " cgroup2 " in line]
    group = Path(mounts[0] if mounts else "/nowhere", f"neurotier-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        missing("making a control group (version 2) needs root")
    yield group
    wait_for(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@pytest.fixture
def mount_tmpfs() -> Iterator[Callable[..., Path]]:
    """Mount a tmpfs of a size and with options; needs root."""
    mounted: list[Path] = []

    def mount(folder: Path, options: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if os.getuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
            missing("mounting a tmpfs needs root")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        system("umount", str(folder))
