"""Container start-up: image file and unpacked image on a disk, on tmpfs and on a slow network, cold and warm.

``start`` is from the engine's start to the first instruction inside (the phase ``container_start``); ``tool`` is
what importing brainextractor takes after that, which reads most of what the image holds. Cold is after the page
cache was dropped (root); the page cache tells how much of the image file came in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench import drop_caches, print_table, spread
from neurotier.containers.engine import find_engine
from neurotier.containers.run import Container
from neurotier.containers.store import ContainerImage, Store
from neurotier.containers.verify import placed_sha256
from neurotier.core.errors import NeurotierError
from neurotier.core.settings import ContainerSettings
from neurotier.meter.residency import resident_share
from slow_network import available, slow_network_folder

REPETITIONS = 3
AT_ONCE = 25
RATE = "400mbit"
TOOL = ["python3", "-c", "import brainextractor"]
SETTINGS = ContainerSettings("sif", network=False, environment={}, binds=[], build_arguments={})


def once(engine: str, image: Path, command: list[str]) -> tuple[float, float]:
    """Seconds to start a container, and what its command took then; the work folder is on tmpfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        begin = time.monotonic()
        code, start = Container(engine, image, SETTINGS, folder / "scratch").run(command, folder / "log")
        if code != 0:
            sys.exit((folder / "log").read_text())
        return start.wall_s, time.monotonic() - begin - start.wall_s


def rows_of(engine: str, tier: str, form: str, image: Path, cold: bool) -> Iterator[list[object]]:
    """Rows of one tier and form: cold, warm, and many at once."""
    for state in ("cold", "warm") if cold else ("warm",):
        starts, tools, came_mib = [], [], []
        once(engine, image, TOOL)
        for _ in range(REPETITIONS):
            if state == "cold":
                drop_caches()
            before = resident_share([image]) if image.is_file() else None
            start_s, _ = once(engine, image, ["true"])
            tool_s = once(engine, image, TOOL)[1] if state == "warm" else None
            after = resident_share([image]) if image.is_file() else None
            starts.append(start_s)
            if before is not None and after is not None:
                came_mib.append((after - before) * image.stat().st_size / 2**20)
            if state == "cold":
                drop_caches()
                tool_s = sum(once(engine, image, TOOL))
            tools.append(tool_s or 0.0)
        print(f"{tier}, {form}, {state}: done", file=sys.stderr, flush=True)
        yield [tier, form, state, spread(starts, 3), spread(tools), spread(came_mib, 1) if came_mib else ""]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        starts = [start_s for start_s, _ in pool.map(lambda _: once(engine, image, ["true"]), range(AT_ONCE))]
    yield [tier, form, f"warm, {AT_ONCE} at once", spread(starts, 3), "", ""]


@contextmanager
def tiers() -> Iterator[dict[str, Path]]:
    """Folders on every tier that there is."""
    with ExitStack() as stack:
        found = {
            "disk": Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))),
            "tmpfs": Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))),
        }
        if available():
            found[f"sshfs, {RATE}/s"] = stack.enter_context(slow_network_folder(RATE))
        else:
            print("no slow network: that needs root, sshfs, openssh-server and iproute2", file=sys.stderr)
        yield found


def main() -> None:
    engine, cold = find_engine(), os.geteuid() == 0
    rows: list[list[object]] = []
    verified: list[list[object]] = []
    with tempfile.TemporaryDirectory(prefix="neurotier-store-", dir="/var/tmp") as name, tiers() as folders:
        kept = Path(name)
        given = Store(kept, kept / "images", print, engine=engine, settings=SETTINGS, log=kept / "log")
        reference = sys.argv[1] if len(sys.argv) > 1 else "containers/brainextractor.def"
        image = given.obtain(reference, "tool.brainextractor.image")
        for tier, folder in folders.items():
            for form in ("sif", "sandbox"):
                store = replace(given, images=folder / form)
                store.images.mkdir()
                begin = time.monotonic()
                placed = store.place(ContainerImage(image.reference, image.name, image.sha256, image.size_bytes, form))
                print(f"placed {form} on {tier} in {time.monotonic() - begin:.1f} s: {occupied(placed)}")
                verified.append(verification(tier, form, placed))
                try:
                    rows += rows_of(engine, tier, form, placed, cold and tier != "tmpfs")
                except NeurotierError as error:
                    rows.append([tier, form, "does not start", "", "", ""])
                    print(error, file=sys.stderr)
    header = ["tier", "form", "state", "start, s", "tool, s", "image file into the page cache, MiB"]
    print_table(f"Container start-up, median and range of {REPETITIONS}; cold tool includes its start", header, rows)
    header = ["tier", "form", "MB", "s", "MB/s"]
    print_table(f"Verifying an image once per run, warm, median and range of {REPETITIONS}", header, verified)


def verification(tier: str, form: str, placed: Path) -> list[object]:
    """What it takes to read all of a placed image for its digest."""
    files = [placed] if placed.is_file() else [path for path in placed.rglob("*") if path.is_file()]
    size_mb = sum(path.lstat().st_size for path in files if not path.is_symlink()) / 1e6
    took_s = []
    for _ in range(REPETITIONS):
        begin = time.monotonic()
        placed_sha256(placed)
        took_s.append(time.monotonic() - begin)
    return [tier, form, f"{size_mb:.0f}", spread(took_s), spread([size_mb / one_s for one_s in took_s], 0)]


def occupied(path: Path) -> str:
    """Room and number of files that an image takes."""
    said = subprocess.run(["du", "-sm", str(path)], capture_output=True, text=True, check=True).stdout.split()[0]
    files = sum(len(names) for _, _, names in os.walk(path)) if path.is_dir() else 1
    return f"{said} MiB in {files} file{'' if files == 1 else 's'}"


if __name__ == "__main__":
    if shutil.which("apptainer") is None and shutil.which("singularity") is None:
        sys.exit("a container engine is needed")
    main()
