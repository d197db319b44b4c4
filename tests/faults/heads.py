"""Faults of the head of a cluster run: Ctrl-C, ``kill -9``, and a reboot of its host, each at random moments.

``python -m faults.heads --participants 160 --times 5 --seed 1`` starts the Slurm of the tests and prints a table; exit
1 if an invariant was violated. After each fault the same command is started again, and then:

- it submits no more jobs than those who are missing need;
- nobody has been analysed twice at the same time: the tool holds a lock meanwhile;
- it ends with exit code 0, with the derivatives of an undisturbed run, and leaves no job behind.

Last, two heads with results folders of their own in one working folder are killed and started again, in any order; both
have to end as well.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import psutil
from slurm_cluster import Cluster, slurm, wait_until
from slurm_hosts import LOGIN, give
from support import Ended, Project, Started, checksums, save_image, script, small_head

FAULTS = ("Ctrl-C", "kill -9", "reboot")

TWO_HEADS, KILLS = "two heads", 6
"""A trial of two heads, and how many times one of them is killed."""

PER_JOB = 16
"""Participants of a job, as in ``profiles/slurm``."""

ON_SLURM = [
    *("--profile", "profiles/slurm", "--resources", "mem_mb=5000"),
    *("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2"),
]

KEPT, OTHER = ("results", ".snakemake"), "other"
"""What every trial starts afresh with, below the working folder, and the results folder of a second head."""

PATIENCE_S = 600.0
"""How long a run may take, s: the machine may be busy."""

TOOL = """
# bet IN OUT -m -f F: says so if this image is being analysed elsewhere; copies what stands for a brain and its mask.
exec 9> "{locks}/$(basename "$1")"
flock --nonblock 9 || echo "$1" >> "{twice}"
sleep {sleep_s} 9>&-
cp "$1" "$2.nii.gz" && cp "{mask}" "$2_mask.nii.gz"
"""


@dataclass
class Undisturbed:
    """A project that is ready for its participants, and what a run of it gives that nothing disturbs."""

    cluster: Cluster
    project: Project
    participants: int
    took_s: float = 0.0
    jobs: int = 0
    derivatives: dict[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> Path:
        return self.project.folder / "tools"

    def start(self) -> Started:
        """Start the head in a session of its own, as a terminal would."""
        own = ["--config", f"results={self.project.results_name}"]
        return self.project.start("participants", *ON_SLURM, *own, cores=0, path=self.tools, start_new_session=True)

    def restore(self) -> None:
        """Begin anew, with an index and nobody analysed."""
        for name in KEPT:
            shutil.rmtree(self.project.folder / name, ignore_errors=True)
            subprocess.run(["cp", "-a", f"prepared/{name}", name], cwd=self.project.folder, check=True)

    def done(self) -> int:
        """How many participants have a record."""
        return len(list(self.project.records()))

    def shares_left(self) -> int:
        """How many jobs have somebody to analyse: the k-th of n has every n-th participant in order of size."""
        count, done = -(-self.participants // PER_JOB), {record.stem for record in self.project.records()}
        images = sorted(self.project.table("index/images.tsv"), key=lambda row: -int(row["size_bytes"]))
        names = [image["participant"] for image in images]
        return sum(not done.issuperset(names[share::count]) for share in range(count))

    def jobs_since(self, first: int) -> int:
        """How many jobs were submitted from a number on; all of them are of participants, which alone are asked for."""
        return self.cluster.next_job() - first


@dataclass
class Trial:
    """A fault, and what became of the run."""

    fault: str
    moment_s: float
    missing: int = 0
    needed: int = 0
    submitted: int = 0
    took_s: float = 0.0
    violations: list[str] = field(default_factory=list)


def prepare(cluster: Cluster, participants: int, sleep_s: float, took_s: float | None = None) -> Undisturbed:
    """A project with an index, and an undisturbed run of it.

    Parameters
    ----------
    cluster
        Where it is.
    participants, sleep_s
        How many there are, and how long the tool takes for each, s.
    took_s
        How long a run takes, s, if that shall not be found out: the undisturbed run is then one on the login node.
    """
    project = cluster.project("heads")
    folder, labels = project.folder, [f"{number:03d}" for number in range(participants)]
    project.heads(*labels)
    mask = save_image(folder / "mask.nii.gz", (small_head() > 250).astype(np.int16))
    tools, locks, twice = (folder / name for name in ("tools", "locks", "twice"))
    script(tools / "bet", TOOL.format(locks=locks, twice=twice, sleep_s=sleep_s, mask=mask))
    locks.mkdir()
    twice.touch()
    project.configure(tool="bet")
    give(folder)
    project.succeeds("results/index/images.tsv", "results/index/tool.json", path=tools)
    (folder / "prepared").mkdir()
    for name in KEPT:
        (folder / name).rename(folder / "prepared" / name)

    run = Undisturbed(cluster, project, participants)
    run.restore()
    if took_s is not None:
        project.succeeds("participants", cores=PER_JOB, path=tools)
        run.took_s = took_s
    else:
        first, begin = run.cluster.next_job(), time.monotonic()
        run.start().ended(PATIENCE_S).succeeded()
        run.took_s, run.jobs = time.monotonic() - begin, run.jobs_since(first)
        assert run.jobs == -(-participants // PER_JOB), f"{run.jobs} jobs for {participants} participants"
    run.derivatives = checksums(project.derivatives)
    assert run.done() == participants
    return run


def hold(run: Undisturbed, fault: str, chance: random.Random) -> Trial:
    """Disturb a run, start it again, and look."""
    while True:
        trial = Trial(fault, chance.uniform(0, run.took_s))
        if disturb(run, trial):
            break
    time.sleep(chance.choice((0.0, 0.0, chance.uniform(0, 3))))
    trial.missing = run.participants - run.done()
    trial.needed = run.shares_left()
    second, begin = run.cluster.next_job(), time.monotonic()
    ended = run.start().ended(PATIENCE_S)
    trial.took_s = time.monotonic() - begin
    trial.submitted = run.jobs_since(second)
    check(run, trial, ended)
    return trial


def disturb(run: Undisturbed, trial: Trial) -> bool:
    """Start a run, and have the fault at its moment; whether there was a head to hit."""
    run.restore()
    (run.project.folder / "twice").write_text("")
    head = run.start()
    try:
        head.wait(trial.moment_s)
    except subprocess.TimeoutExpired:
        pass
    else:
        return False
    strike(run, trial, head)
    if trial.fault == "Ctrl-C" and "Traceback" in (said := head.said.read_text()):
        trial.violations.append("a Python trace at Ctrl-C: " + said[said.index("Traceback") :][:2000])
    return True


def strike(run: Undisturbed, trial: Trial, head: Started) -> None:
    """Have the fault come to a head."""
    if trial.fault == "reboot":
        run.cluster.kill_host(LOGIN)
        run.cluster.start_login()
    elif trial.fault == "kill -9":
        for process in psutil.Process(head.pid).children():
            process.kill()
    else:
        for process in psutil.Process(head.pid).children(recursive=True):  # a terminal tells them all
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)
    head.wait(PATIENCE_S)


def hold_two(run: Undisturbed, chance: random.Random) -> Trial:
    """Kill and start two heads in one working folder, whose jobs share nodes; look when both have ended."""
    shutil.rmtree(run.project.folder / OTHER, ignore_errors=True)
    run.restore()
    both = [run, replace(run, project=replace(run.project, results_name=OTHER))]
    first, begin, trial = run.cluster.next_job(), time.monotonic(), Trial(TWO_HEADS, 0.0)
    started = [one.start() for one in both]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0, run.took_s / 2))
        which = chance.randrange(2)
        if started[which].poll() is not None:
            continue
        trial.moment_s = time.monotonic() - begin
        strike(run, replace(trial, fault=chance.choice(("Ctrl-C", "kill -9"))), started[which])
        started[which] = both[which].start()
    trial.missing = sum(one.participants - one.done() for one in both)
    for one, head in zip(both, started, strict=True):
        check_end(one, trial, head.ended(PATIENCE_S))
    trial.needed = trial.submitted = run.jobs_since(first)
    trial.took_s = time.monotonic() - begin
    return trial


def check(run: Undisturbed, trial: Trial, ended: Ended) -> None:
    """What must hold after the second start."""
    if trial.submitted > trial.needed:
        trial.violations.append(f"{trial.submitted} jobs for {trial.missing} participants")
    twice = (run.project.folder / "twice").read_text().split()
    if twice:
        trial.violations.append(f"analysed twice at the same time: {' '.join(Path(one).name for one in twice)}")
    check_end(run, trial, ended)


def check_end(run: Undisturbed, trial: Trial, ended: Ended) -> None:
    """What must hold when a run has ended at last."""
    if ended.code:
        trial.violations.append(f"exit code {ended.code}: {ended.output[-500:]}")
    if run.done() != run.participants or checksums(run.project.derivatives) != run.derivatives:
        trial.violations.append("the derivatives are not those of an undisturbed run")
    try:
        wait_until(lambda: not run.cluster.queued(), "the end of all jobs")
    except TimeoutError:
        trial.violations.append(f"jobs are left: {run.cluster.queued()}")


def campaign(run: Undisturbed, times: int, seed: int) -> Iterator[Trial]:
    """All faults in turn, each so many times, and as often two heads."""
    chance = random.Random(seed)
    for _ in range(times):
        for fault in FAULTS:
            yield hold(run, fault, chance)
        yield hold_two(run, chance)


def table(trials: list[Trial]) -> str:
    """Each trial, as a Markdown table."""
    lines = [
        "| fault | after, s | missing then | jobs they need | submitted | second start, s | violations |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {trial.fault} | {trial.moment_s:.1f} | {trial.missing} | {trial.needed} | {trial.submitted} "
        f"| {trial.took_s:.1f} | {'; '.join(one[:60] for one in trial.violations) or 'none'} |"
        for trial in sorted(trials, key=lambda trial: (trial.fault, trial.moment_s))
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="faults.heads", description=__doc__)
    parser.add_argument("--participants", type=int, default=160)
    parser.add_argument("--times", type=int, default=5, help="how often each fault")
    drawn = random.SystemRandom().randrange(10**6)
    parser.add_argument("--seed", type=int, default=drawn, help="seed of the campaign; drawn and shown if not given")
    parser.add_argument("--sleep", type=float, default=1.0, help="what the tool takes for a participant, s")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background children ignore it
    trials: list[Trial] = []
    with slurm() as cluster:
        run = prepare(cluster, options.participants, options.sleep)
        print(f"seed {options.seed}; undisturbed: {run.jobs} jobs, {run.took_s:.1f} s", flush=True)
        try:
            for trial in campaign(run, options.times, options.seed):
                trials.append(trial)
                needed = f"{trial.submitted} of {trial.needed} jobs for {trial.missing} missing"
                verdict = "; ".join(trial.violations) or "held"
                print(f"{trial.fault} after {trial.moment_s:.1f} s, {needed}: {verdict}", flush=True)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
    violated = sum(bool(trial.violations) for trial in trials)
    print(f"\n{table(trials)}\n\nseed {options.seed}: {violated} with violations")
    return int(violated > 0 or len(trials) < options.times * (len(FAULTS) + 1))


if __name__ == "__main__":
    sys.exit(main())
