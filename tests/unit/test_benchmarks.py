"""Benchmarks that are ended leave nothing behind: a throttled device would slow down whoever has it next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import missing
from devices import THROTTLE, output
from support import ENVIRONMENT, PATIENCE_S, ROOT, wait_for

PROGRAM = """
import sys
from pathlib import Path
from bench import scratch_project, timed
from devices import loop_device

begun = Path(sys.argv[1])
try:
    with scratch_project() as project, loop_device(16, 8_000_000, below=begun.parent) as slow:
        timed(["sh", "-c", f"echo of the tier >file; df --output=source . >{begun}; exec sleep 600"], slow)
except OSError as error:
    sys.exit(f"no throttled disk here: {error}")
"""


def throttles() -> list[str]:
    """What is throttled, by number of its device."""
    return [line for file in THROTTLE.glob("blkio.throttle.*_bps_device") for line in file.read_text().splitlines()]


def test_one_that_is_ended_leaves_no_device_nor_throttle(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(begun)],
        env={**ENVIRONMENT, "PYTHONPATH": f"{ROOT / 'tests' / 'benchmarks'}:{ROOT / 'tests'}", "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: process.poll() is not None or (begun.exists() and begun.read_text().endswith("\n")))
    if process.poll() is not None:
        missing(process.communicate()[1].splitlines()[-1])
    device = Path(begun.read_text().split()[-1])
    number = Path("/sys/block", device.name, "dev").read_text().strip()
    assert any(line.startswith(f"{number} ") for line in throttles())
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == [begun]
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert str(tmp_path) not in output("losetup", "--list")
    assert not any(line.startswith(f"{number} ") for line in throttles())
