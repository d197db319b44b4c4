"""The probe of a tier: fio and small files, real ones; what is refused, what a kill leaves, and what the page says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from configured import settings_at
from neurotier.core.errors import TierError, ToolError
from neurotier.core.places import Places
from neurotier.core.tables import Row, columns, write_table
from neurotier.core.tiers import Tier
from neurotier.model.this_machine import figures_of
from neurotier.pages import probe
from neurotier.pages.kit.page import Data
from neurotier.storage.calls import LOOK_S, run_call
from neurotier.storage.fio import MIB, Access, FioJob, find_access, run_fio
from neurotier.storage.probe.plan import Effort, ProbePlan
from neurotier.storage.probe.small_files import LEAST_FILES, OPERATIONS, measure_files
from neurotier.storage.probe.walk import Measurement, Walk, concurrency, one_stream, probe_rows
from neurotier.storage.workspace import Workspace
from page_reader import page_of, read_plain
from support import JOB_ENVIRONMENT, PATIENCE_S, processes_in, system, wait_for, while_running
from workloads import throttled

ALONE = """
import sys
from pathlib import Path
from neurotier.storage.fio import FioJob, run_fio
run_fio(FioJob("long", "write", 4096, 1 << 20, streams=2, runtime_s=60, repeat=True), Path(sys.argv[1]), 90)
"""


ENDLESS = FioJob("w", "write", 4096, MIB, streams=2, runtime_s=300, repeat=True, options={"rate": "100k"})


@pytest.mark.parametrize("where", ["tmp_path", "memory_folder"])
def test_a_job_says_what_it_moved(where: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(where)
    written = run_fio(FioJob("w", "write", MIB, 32 * MIB, streams=2, end_fsync=True, fresh=True), folder, 60)
    assert (written.write.bytes, written.write.operations, written.read.bytes) == (64 * MIB, 64, 0)
    assert sorted(file.stat().st_size for file in folder.iterdir()) == [32 * MIB] * 2
    assert 0 < written.cells()["cpu_s_per_byte"] < 1e-7
    assert written.fio_version.startswith("fio-")
    read = run_fio(FioJob("r", "read", MIB, 32 * MIB, streams=2), folder, 60)
    assert (read.read.bytes, read.write.bytes) == (64 * MIB, 0)
    assert 0 < read.read.latencies_s["latency_mean_s"] <= read.read.latencies_s["latency_p99_s"] * 2


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (FioJob("w", "write", 4096, MIB, way=Access("nosuch", False)), "nosuch"),
        (FioJob("w", "write", 100, MIB, way=Access("libaio", True)), "Invalid argument"),
    ],
)
def test_what_fio_refuses_is_one_line(tmp_path: Path, job: FioJob, line: str) -> None:
    with pytest.raises(ToolError, match=rf"\A.*{line}.*\Z"):
        run_fio(job, tmp_path, 60)


def test_what_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="fio did not end within 1 s"):
        run_fio(ENDLESS, tmp_path, 1)
    assert processes_in(tmp_path) == []


def test_fio_that_was_suspended_has_measured_nothing(tmp_path: Path) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGCONT)).start()
    with pytest.raises(ToolError, match="fio was suspended and resumed, so that its times mean nothing"):
        run_fio(replace(ENDLESS, runtime_s=2), tmp_path, 60)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGCONT)).start()  # to one that fails, its own error matters
    ended = run_call(["sh", "-c", "sleep 1; echo why >&2; exit 3"], tmp_path, 60, "here")
    assert (ended.returncode, ended.stderr) == (3, "why\n")


@pytest.mark.nightly
def test_a_program_that_was_frozen_has_measured_nothing(tmp_path: Path, control_group: Path) -> None:
    """As by `docker pause`: no signal tells of it."""
    call = "from neurotier.storage.calls import run_call; from pathlib import Path\n"
    call += "print(run_call(['sh', '-c', 'touch begun; sleep 1'], Path(), 60, 'here'))"
    command = ["sh", "-c", f'echo $$ > {control_group}/cgroup.procs; exec "$@"', "sh", sys.executable, "-c", call]
    process = subprocess.Popen(command, cwd=tmp_path, env=JOB_ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "begun").exists, process)
    (control_group / "cgroup.freeze").write_text("1")
    time.sleep(5 * LOOK_S)
    (control_group / "cgroup.freeze").write_text("0")
    _, said = process.communicate(timeout=PATIENCE_S)
    assert "here: sh was suspended and resumed, so that its times mean nothing" in said


@pytest.mark.parametrize(("victim", "what"), [(0, "it was killed by signal 9"), (1, "a stream was killed by signal 9")])
def test_fio_whose_process_is_killed_has_failed_at_once(tmp_path: Path, victim: int, what: str) -> None:
    """It may say that all went well, or never end, if that is a stream; streams go on if it is fio itself."""

    def kill() -> None:
        wait_for(lambda: len(processes_in(tmp_path)) == 3)
        sorted(processes_in(tmp_path), key=lambda one: one.create_time())[victim].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(ToolError, match=rf"^w \(psync, buffered\) in .*: fio: {re.escape(what)}"):
        run_fio(ENDLESS, tmp_path, 60)
    killer.join()
    assert processes_in(tmp_path) == []


def test_fio_ends_with_who_started_it(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ALONE, str(tmp_path)])
    wait_for(lambda: len(processes_in(tmp_path)) >= 3, while_running(process))  # fio and its two streams
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not processes_in(tmp_path))


def test_small_files_are_measured_and_gone(memory_folder: Path) -> None:
    for streams in (1, 3, 8 * len(os.sched_getaffinity(0))):
        measured = measure_files("memory", memory_folder, streams, 5.0, 60.0)
        assert tuple(measured) == OPERATIONS
        for operation in measured.values():
            assert 0 < operation["operation_cpu_s"] <= operation["latency_mean_s"] * 1.05
            assert 0 <= operation["operation_wait_s"] < operation["latency_mean_s"]
            # streams that take turns on a core are no faster together than one
            assert operation["operations_per_s"] * operation["operation_cpu_s"] <= len(os.sched_getaffinity(0))
        assert list(memory_folder.iterdir()) == []


def test_the_page_has_a_name_for_all_that_is_measured() -> None:
    """Without one, the page fails once all tiers are measured."""
    assert {*probe.PATTERNS, *probe.OPERATIONS} == {*columns("probe")["pattern"]["enum"]}


def test_a_tier_with_few_inodes_is_measured_with_few_files_and_one_without_is_named(
    tmp_path: Path, mount_tmpfs: Callable[..., Path]
) -> None:
    few = mount_tmpfs(tmp_path / "few", f"nr_inodes={3 * LEAST_FILES}")
    assert measure_files("few", few, 1, 5.0, 60.0)["make"]["operation_cpu_s"] > 0
    assert list(few.iterdir()) == []
    none = mount_tmpfs(tmp_path / "none", f"nr_inodes={LEAST_FILES // 2}")
    with pytest.raises(TierError, match=r"^tier 'none': had no room, or no inodes, for 40 small files; make room, or"):
        measure_files("none", none, 2, 5.0, 60.0)
    assert list(none.iterdir()) == []


def test_what_cannot_be_done_or_does_not_end_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"^tier 'gone', small files: No such file or directory$"):
        measure_files("gone", tmp_path / "gone", 1, 0.5, 60.0)
    (tmp_path / "files.1").touch()  # the others do not wait for one that fails
    with pytest.raises(ToolError, match=r"^tier 'odd', small files: File exists$"):
        measure_files("odd", tmp_path, 3, 0.5, 60.0)
    with pytest.raises(ToolError, match=r"^tier 'slow', small files: python.* did not end within 0 s$"):
        measure_files("slow", tmp_path, 1, 0.5, 0.001)


THROTTLE_BYTES_PER_S = 20_000_000


def test_a_page_cache_that_is_not_passed_by_is_seen() -> None:
    """Some file systems take ``O_DIRECT`` and go through the page cache, as ext4 does whose journal has data, too.

    Btrfs bypasses it, but keeps the blocks at both ends of a file.
    """
    with throttled(128, THROTTLE_BYTES_PER_S) as folder:
        assert find_access(folder, "block") == Access("libaio", direct=True)
        device = system("findmnt", "-no", "SOURCE", str(folder)).strip()
        system("umount", str(folder))
        system("mount", "-o", "data=journal", device, str(folder))
        assert find_access(folder, "block") == Access("psync", direct=False)
        if shutil.which("mkfs.btrfs"):
            system("umount", str(folder))
            system("mkfs.btrfs", "-q", "-f", device)
            system("mount", device, str(folder))
            assert find_access(folder, "block") == Access("libaio", direct=True)


@pytest.mark.alone
def test_a_throttled_disk_is_as_fast_as_its_throttle() -> None:
    with throttled(128, THROTTLE_BYTES_PER_S) as slow_disk:
        folder, tier = slow_disk / "probe", Tier("slow", slow_disk, "block", None)
        folder.mkdir()
        walk = Walk(Workspace("probe", tier, folder), Effort(2, 1, 20.0, 16 * MIB, 64 * MIB), print)
        access = find_access(folder, "block")
        assert access == Access("libaio", direct=True)
        walk.measure(one_stream("block", 16 * MIB))
        walk.measure(concurrency(access, "block", 2, 8 * MIB, slice_s=1.0))
    rows = {(row["part"], row["pattern"]): row["bandwidth_bytes_per_s"] for row in probe_rows(tier, walk.samples)}
    for part, pattern in (("one_stream", "read"), ("concurrency", "write"), ("concurrency", "read")):
        assert rows[part, pattern] == pytest.approx(THROTTLE_BYTES_PER_S, rel=0.15), (part, pattern)
        assert rows[part, "cached_read"] > 10 * THROTTLE_BYTES_PER_S
    # the flush of a buffered file ends with the journal's commit: several more turns of the throttle, 0.1 s each
    assert 0.5 * THROTTLE_BYTES_PER_S < rows["one_stream", "write"] < 1.15 * THROTTLE_BYTES_PER_S
    # much more on an idle machine; where others have much dirty, the kernel slows everybody down to their device
    assert rows["concurrency", "buffered_write"] > 0.85 * THROTTLE_BYTES_PER_S


def test_a_tier_that_fills_up_meanwhile_is_named(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    mount = mount_tmpfs(tmp_path / "small", "size=4m")
    workspace = Workspace("probe", Tier("small", mount, "tmpfs", None), mount)
    walk = Walk(workspace, Effort(1, 1, 1.0, 16 * MIB, 1024 * MIB), print)
    with pytest.raises(TierError, match=r"^tier 'small': filled up during the probe, which needed 16 MiB; "):
        walk.measure([Measurement("write", "write", MIB, 16 * MIB, part="one_stream")])
    assert list(mount.iterdir()) == []


def planned(tmp_path: Path, cores: int | None = 2, **probe: object) -> ProbePlan:
    """What the rules would ask, with a tier for each kind of role."""
    tiers = {name: {"path": str(tmp_path), "kind": "block"} for name in ("fast", "spare")}
    settings = settings_at(tmp_path, tiers=tiers, placement={"work": "fast"}, probe=probe)
    return ProbePlan(settings, Places.from_settings(settings), cores)


def test_what_was_probed_further_is_kept(tmp_path: Path, memory_folder: Path) -> None:
    """Fewer cores are no reason to probe again; more are, and so is another file system or setting."""
    assert (planned(tmp_path, 1).streams("disk"), planned(tmp_path, 500).streams("disk")) == (1, 96)
    few, tier = planned(tmp_path, 1), Tier("memory", memory_folder, "tmpfs", None)
    walk = Walk(Workspace("probe", tier, memory_folder), Effort(2, 2, 8.0, 16 * MIB, 64 * MIB), print)
    write_table(few.places.probe_table("disk"), "probe", probe_rows(tier, walk.run()))
    assert list(memory_folder.iterdir()) == []
    assert few.asked("disk") == planned(tmp_path, 2).asked("disk")
    assert few.asked("disk") != planned(tmp_path, 4).asked("disk")
    assert few.asked("disk") != planned(tmp_path, 1, repetitions=9).asked("disk")
    assert planned(tmp_path, 4, streams=1).streams("disk") == 1
    for text, most in (("streams\tof_another_version\n2\t1\n", 2), ("", 1), ("other\n1\n", 1)):
        few.table("disk").write_text(text)
        assert few.streams("disk") == most


MB = 1e6


def measured(tier: str, kind: str, part: str, pattern: str, streams: int, bytes_per_s: float) -> Row:
    """A row of the table, with a range of a tenth."""
    spread = {"bandwidth_low_bytes_per_s": 0.9 * bytes_per_s, "bandwidth_high_bytes_per_s": 1.1 * bytes_per_s}
    about = {"fs_type": "ext4", "engine": "psync", "operations_per_s": 10.0, "queue_depth": 1, "file_bytes": MIB}
    names = ("tier", "kind", "part", "pattern", "streams", "bandwidth_bytes_per_s")
    point = dict(zip(names, (tier, kind, part, pattern, streams, bytes_per_s), strict=True))
    return dict.fromkeys(columns("probe")) | about | point | spread


def probed(tier: str, kind: str, single: float, most: float) -> list[Row]:
    """Rows of a tier that scales from one stream's bandwidth to its most."""
    patterns = {"read": 1.0, "write": 0.6, "mixed": 0.8}
    rows = [measured(tier, kind, "one_stream", name, 1, single * patterns[name]) for name in ("write", "read")]
    if kind != "tmpfs":
        rows.append(measured(tier, kind, "one_stream", "cached_read", 1, 4000 * MB))
        patterns |= {"cached_read": 9.0, "buffered_write": 5.0}
    rows += [measured(tier, kind, "small", name, 1, 0.0) for name in ("random_read", "random_write")]
    costs = {"operation_cpu_s": 1.25e-5, "operation_wait_s": 2e-3, "operation_low_s": 1e-3, "operation_high_s": 3e-3}
    rows += [measured(tier, kind, "files", name, 1, 0.0) | costs for name in ("make", "look")]
    return rows + [
        measured(tier, kind, "concurrency", name, streams, share * min(streams * single, most))
        for name, share in patterns.items()
        for streams in (1, 2, 4, 8, 16, 32, 64, 96)
    ]


ROWS = [
    *probed("disk", "block", 500 * MB, 2000 * MB),
    *probed("tmpfs", "tmpfs", 5000 * MB, 500_000 * MB),
    *probed("nfs", "network", 110 * MB, 115 * MB),
]


def test_findings_say_who_is_fastest_and_who_stops() -> None:
    def said(rows: list[Row]) -> str:
        return probe.concurrency(Data({"probe": rows}, None)).says

    assert said(ROWS) == (
        "With up to 96 streams, tmpfs reads 480 GB/s, 4,174 times as much as nfs; tmpfs gains up to 96 streams; "
        "disk gains up to 4 streams; nfs gains nothing from a second stream"
    )
    alike = [*probed("disk", "block", 51 * MB, 51 * MB), *probed("same", "block", 50 * MB, 50 * MB)]
    assert said(alike).startswith("With up to 96 streams, disk reads 51.0 MB/s, about as much as same; ")
    fewer = [row for row in probed("fewer", "block", 60 * MB, 900 * MB) if row["streams"] <= 2]
    further = probed("further", "block", 30 * MB, 900 * MB)
    assert said([*further, *fewer]) == (
        "With up to 2 streams, fewer reads 120 MB/s, 2.00 times as much as further; fewer gains up to 2 streams; "
        "further gains up to 32 streams"
    ), "what one reads with streams that the other was not probed with is no advantage"
    writes = [row for row in probe.curves(ROWS) if (row["tier"], row["pattern"]) == ("disk", "write")]
    assert probe.full_at(writes) == 4
    assert probe.one_stream(Data({"probe": ROWS}, None)).says == (
        "With one stream, disk (500 MB/s read, 300 MB/s written) is nearest to the published SSD; "
        "tmpfs (5.00 GB/s read, 3.00 GB/s written) is nearest to the published DRAM; "
        "nfs (110 MB/s read, 66.0 MB/s written) is nearest to the published Isilon"
    )


def test_the_model_is_given_what_the_table_says() -> None:
    rows = probed("disk", "block", 500 * MB, 2000 * MB)
    buffered = (row | {"file_bytes": 2 * MIB} if row["pattern"] == "buffered_write" else row for row in rows)
    make = next(row for row in rows if row["pattern"] == "make")
    make["latency_mean_s"] = 0.25
    found = figures_of([*buffered, make | {"streams": 4, "latency_mean_s": 0.75}])
    assert found.make_s == 0.25, "of one stream"
    assert (found.read_bytes_per_s[8], found.buffered_bytes[4]) == (2000 * MB, 8 * MIB)
    assert (found.single_read_bytes_per_s, found.single_write_bytes_per_s) == (500 * MB, 300 * MB)


@pytest.mark.parametrize("rows", [ROWS, probed("alone", "block", 20 * MB, 20 * MB)[:9], []])
def test_figures_have_their_numbers_beside_them(rows: list[Row], tmp_path: Path) -> None:
    page_of("probe", tmp_path, probe=rows)
    shown = read_plain(tmp_path / "probe" / "figures" / "concurrency.tsv")
    expected = [row["bandwidth_bytes_per_s"] for row in rows if row["part"] == "concurrency"]
    assert sorted(float(row["median"]) for row in shown) == pytest.approx(sorted(expected))
