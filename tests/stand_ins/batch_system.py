#!/usr/bin/env python3
"""The commands of PBS, SGE and LSF, as their manuals have them, each by its name; a job is a process of this machine.

The folder ``BATCH`` has a file of each job: its process while it runs, and then its exit code. The first job is killed,
as for its memory, so that its script can tell nobody.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
JOBS = Path(os.environ["BATCH"])
COMMAND, WORDS = Path(sys.argv[0]).name, sys.argv[1:]
KINDS = {
    "pbs": (["-V"], ["-N", "-j", "-o", "-l"], "PBS_JOBID"),
    "sge": (["-terse", "-V", "-cwd"], ["-N", "-j", "-o", "-l"], "JOB_ID"),
    "lsf": ([], ["-J", "-o", "-n", "-R", "-M", "-W"], "LSB_JOBID"),
}
"""Of each: options without and with a word, and the variable by which a job knows its number."""


def submit(kind: str) -> str:
    """Start a job from a command line that has nothing but what the manual knows; its number."""
    flags, options, own_number = KINDS[kind]
    words, given = list(WORDS), dict[str, str]()
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-pe" and kind == "sge":
            assert re.fullmatch(r"smp \d+", f"{words.pop(0)} {words.pop(0)}")
        elif option in options:
            given[option] = f"{given.get(option, '')} {words.pop(0)}".strip()
        else:
            assert option in flags, option
    asked = {
        "pbs": r"select=1:ncpus=\d+:mem=\d+mb walltime=\d{3,}",  # s
        "sge": r"h_vmem=\d+M h_rt=\d{3,}",
        "lsf": r"span\[hosts=1\] rusage\[mem=\d+\]",
    }
    assert re.fullmatch(asked[kind], given["-R" if kind == "lsf" else "-l"]), given
    assert kind != "lsf" or int(given["-W"]) < 1000, "its time is in minutes"
    assert not (kind == "lsf" and words), "bsub takes a word for a command, and then no script"
    script = sys.stdin.read() if kind == "lsf" else Path(words[0]).read_text()
    assert script.startswith("#!/bin/sh"), script
    assert Path(given["-o"] if kind != "lsf" else Path(given["-o"]).parent).is_dir(), "no folder for logs"
    number = str(len(list(JOBS.glob("[0-9]*"))) + 1)
    known_as = f"{number}.server" if kind == "pbs" else number
    folder = os.getcwd() if kind != "pbs" else str(Path.home())
    command = [sys.executable, str(HERE), number]
    nowhere = subprocess.DEVNULL  # or who submits would wait for its end
    job = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=nowhere,
        stderr=nowhere,
        cwd=folder,
        start_new_session=True,
        env=(os.environ if kind == "lsf" or "-V" in WORDS else {"BATCH": str(JOBS)}) | {own_number: known_as},
    )
    assert job.stdin is not None
    (JOBS / number).write_text(f"running {job.pid}")
    job.stdin.write(script.encode())
    job.stdin.close()
    return known_as


def run(number: str) -> None:
    """Be the job."""
    script = sys.stdin.read()
    with (JOBS / f".{number}.log").open("w") as log:
        job = subprocess.Popen(["/bin/sh"], stdin=subprocess.PIPE, stdout=log, stderr=log)
        assert job.stdin is not None
        if number == "1":
            time.sleep(0.5)
            job.send_signal(signal.SIGKILL)
        else:
            job.stdin.write(script.encode())
        job.stdin.close()
        code = job.wait()
    (JOBS / number).write_text(f"ended {code if code >= 0 else 256 - code}")


def file_of(number: str) -> Path:
    """The file of a job."""
    return JOBS / number.partition(".")[0]


def state(number: str) -> tuple[str, int]:
    """Whether a job runs, has ended or is not known, and its process or exit code."""
    file = file_of(number)
    word, code = file.read_text().split() if file.exists() else ("unknown", "0")
    return word, int(code)


def answer() -> tuple[int, str]:
    """Exit code and words of a command."""
    if COMMAND == "qsub":
        kind = "sge" if "-terse" in WORDS else "pbs"
        return 0, submit(kind)
    if COMMAND == "bsub":
        return 0, f"Job <{submit('lsf')}> is submitted to default queue <normal>."
    number = WORDS[-1]
    word, code = state(number)
    match COMMAND, WORDS[:-1]:
        case "qstat", ["-x", "-f"]:
            facts = f"Job Id: {number}\n    Job_Name = neurotier\n    job_state = {'R' if word == 'running' else 'F'}\n"
            known = facts + (f"    Exit_status = {code}\n" if word == "ended" else "")
            return (153, f"qstat: Unknown Job Id {number}") if word == "unknown" else (0, known)
        case "qstat", ["-j"]:
            gone = f"Following jobs do not exist: \n{number}"
            return (0, f"job_number: {number}") if word == "running" else (1, gone)
        case "qacct", ["-j"]:
            by_signal = code > 128
            facts = f"failed       {'100 : assumedly after job' if by_signal else 0}\nexit_status  {code}"
            return (0, facts) if word == "ended" else (1, f"error: job id {number} not found")
        case "bjobs", ["-noheader", "-o", "stat"]:
            said = "RUN" if word == "running" else "EXIT" if code else "DONE"
            return (255, f"Job <{number}> is not found") if word == "unknown" else (0, said)
        case "qdel" | "bkill", []:
            assert word == "running", f"{number} is {word}"
            os.killpg(code, signal.SIGKILL)
            file_of(number).write_text("ended 137")
            return 0, ""
    raise AssertionError(f"{COMMAND} {WORDS}")


if __name__ == "__main__":
    if HERE.name == COMMAND:
        run(WORDS[0])
        sys.exit(0)
    exit_code, said = answer()
    print(said, file=sys.stderr if exit_code else sys.stdout)
    sys.exit(exit_code)
