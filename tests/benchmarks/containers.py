"""Container start-up: image file and unpacked image on a disk, on tmpfs and on a slow network, cold and warm.

``start`` is from the engine's start to the first instruction inside (the phase ``container_start``); ``tool`` is
what importing brainextractor takes after that, which reads most of what the image holds. Cold is after the page
cache was dropped (root).
"""

from __future__ import annotations

import os
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
from neurotier.containers.store import ContainerImage, Store, placed_sha256
from neurotier.core.errors import NeurotierError
from slow_network import available, slow_network_folder
from stores import DATASET, SETTINGS

REPETITIONS = 3
AT_ONCE = 25
RATE = "400mbit"
TRUE, TOOL = ["true"], ["python3", "-c", "import brainextractor"]


def start(engine: str, image: Path, command: list[str], cold: bool = False) -> tuple[float, float]:
    """Seconds to start a container, and what its command took then; the work folder is on tmpfs."""
    if cold:
        drop_caches()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        begin_s = time.monotonic()
        code, started = Container(engine, image, SETTINGS, folder / "scratch").run(command, folder / "log")
        if code != 0:
            sys.exit((folder / "log").read_text())
        return started.wall_s, time.monotonic() - begin_s - started.wall_s


def rows_of(engine: str, image: Path, states: list[str]) -> Iterator[list[str]]:
    """State, start and tool of one tier and form: cold, warm, and many at once."""
    start(engine, image, TOOL)
    for state in states:
        cold = state == "cold"
        starts_s = [start(engine, image, TRUE, cold)[0] for _ in range(REPETITIONS)]
        tools_s = [start(engine, image, TOOL, cold) for _ in range(REPETITIONS)]
        yield [state, spread(starts_s), spread([sum(one) if cold else one[1] for one in tools_s])]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        starts_s = [start_s for start_s, _ in pool.map(lambda _: start(engine, image, TRUE), range(AT_ONCE))]
    yield [f"warm, {AT_ONCE} at once", spread(starts_s), ""]


@contextmanager
def tiers() -> Iterator[dict[str, Path]]:
    """Folders on every tier that there is."""
    with ExitStack() as stack:
        places = {"disk": "/var/tmp", "tmpfs": "/dev/shm"}
        found = {
            name: Path(stack.enter_context(tempfile.TemporaryDirectory(dir=place))) for name, place in places.items()
        }
        if available():
            found[f"sshfs, {RATE}/s"] = stack.enter_context(slow_network_folder(RATE))
        yield found


def placing(store: Store, image: ContainerImage) -> tuple[Path, list[str]]:
    """Place an image; where it is, what it takes there, and how long placing and verifying take."""
    begin_s = time.monotonic()
    placed = store.place(image)
    placed_s = time.monotonic() - begin_s
    begin_s = time.monotonic()
    placed_sha256(placed)
    verified_s = time.monotonic() - begin_s
    mib = subprocess.run(["du", "-sm", str(placed)], capture_output=True, text=True, check=True).stdout.split()[0]
    files = sum(len(names) for _, _, names in os.walk(placed)) if placed.is_dir() else 1
    return placed, [mib, str(files), f"{placed_s:.1f}", f"{verified_s:.2f}"]


def main(reference: str = "containers/brainextractor.def") -> None:
    engine, rows, places = find_engine(), [], []
    with tempfile.TemporaryDirectory(prefix="neurotier-store-", dir="/var/tmp") as name, tiers() as folders:
        kept = Path(name)
        given = Store(kept, kept / "images", print, engine=engine, settings=SETTINGS, log=kept / "log", dataset=DATASET)
        image = given.obtain(reference, "tool.brainextractor.image")
        for tier, folder in folders.items():
            states = ["cold", "warm"] if os.geteuid() == 0 and tier != "tmpfs" else ["warm"]
            for form in ("sif", "sandbox"):
                store = replace(given, images=folder / form, settings=replace(SETTINGS, form=form))
                store.images.mkdir()
                placed, figures = placing(store, image)
                places.append([tier, form, *figures])
                try:
                    rows += [[tier, form, *row] for row in rows_of(engine, placed, states)]
                except NeurotierError as error:
                    rows.append([tier, form, f"does not start: {error}", "", ""])
    header = ["tier", "form", "state", "start, s", "tool, s"]
    print_table(f"Container start-up, median and range of {REPETITIONS}; cold tool includes its start", header, rows)
    print_table("Placing an image", ["tier", "form", "MiB", "files", "placing, s", "verifying, warm, s"], places)
