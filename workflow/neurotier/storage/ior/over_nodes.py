"""The IOR run over several nodes: all nodes write at the same time, and each file is read back by another node.

``salloc`` holds the nodes, and each step is an ``srun``, which passes on what the programs on all nodes print, and ends
when they have ended. Whether nodes see each other's files is tested, not declared. If each node has a tier of its own,
another process of the same node reads the file, and the table says so.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Protocol

from neurotier.core.errors import NeurotierError, TierError, ToolError, one_line
from neurotier.core.places import short_hash
from neurotier.core.private import clear
from neurotier.core.processes import start_process
from neurotier.core.quantities import counted, seconds
from neurotier.core.settings import Say
from neurotier.core.tables import Row, Rows
from neurotier.core.tiers import Tier
from neurotier.storage.ior.points import PIN, Point, cells_of
from neurotier.storage.ior.walk import OTHER_NODE, OTHER_PROCESS, SPANS, Ior
from neurotier.storage.workload import LeftOutError, files_text
from neurotier.storage.workspace import Workspace

CLOCKS_S = 2.0
"""How far the clocks of nodes may appear to differ, s."""

LOOK_S = 20.0
"""How often to ask Slurm about an allocation that is not granted yet, s."""

END_S = 40.0
"""How long a command may take to end, s: Slurm kills it 30 s after asking it to end."""

LOOKS = 3
"""A point is left out when this many looks in a row find a reason that will not pass."""

LASTING = re.compile(
    r"PartitionNodeLimit|PartitionTimeLimit|BadConstraints|AssocMaxNodePerJobLimit|QOSMaxNodePerUserLimit"
    r"|ReqNodeNotAvail(?!.*reserved)|\bDOWN\b(?!.*higher priority)|PartitionDown",
    re.IGNORECASE,
)
"""Slurm reasons for which waiting for nodes is useless: limits of a partition or user, and nodes that are down. Limits
of a group are not among them, since they pass when others' jobs end; nor are nodes that are down *or* reserved for
others' jobs or for maintenance. A point that is left out is not tried again."""

AGAIN = "start the same command again"

REASONS = (
    (r"[Nn]ode failure on (\S+)", r"node \1 failed or was set down", f"{AGAIN} when it is back"),
    (r"DUE TO NODE FAILURE", "a node failed or was set down", AGAIN),
    (
        r"TIME LIMIT",
        "it took longer than its allocation",
        "give rule run_ior a longer runtime (--set-resources run_ior:runtime=MINUTES)",
    ),
    (r"CANCELLED|cancelled|revoked", "its allocation was cancelled", AGAIN),
)
"""Why a step or an allocation ended: Slurm's message (22.05 to 24.11), what it means, and what to do."""


class Cluster(Protocol):
    """How to get nodes (:mod:`neurotier.run.allocations`)."""

    environment: dict[str, str]

    def allocation(self, nodes: int) -> list[str]:
        """The command that allocates whole nodes, prints the number of their job, and ends when its input is closed."""
        ...

    def step(self, job: str, nodes: int, program: Sequence[str]) -> list[str]:
        """The command that runs a program on each node of a job."""
        ...

    def waits_for(self) -> str:
        """Why the allocation is pending, such as ``Resources``; empty if there is none."""
        ...

    def end(self) -> None:
        """End the allocation, if it still exists, and wait until it is gone."""
        ...


@dataclass
class IorOverNodes(Ior):
    """The IOR run over the nodes of a cluster, with one allocation for each point.

    Parameters
    ----------
    settings, places
        Those of the run.
    cluster
        How to get nodes.
    """

    on_other_nodes = True
    cluster: Cluster

    def require(self) -> None:
        """Do nothing here: each node checks for its programs itself."""

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Do nothing: nodes are allocated only for a point."""
        return {}

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Allocate nodes, write the files of a point, and read them back.

        Raises
        ------
        LeftOutError
            If Slurm can never provide such nodes, or they have nothing to pin to.
        TierError
            If there is too little room.
        ToolError
            If no nodes are available now, they differ, or one fails.
        """
        tier, below = workspace.tier, Path(short_hash(str(self.places.results.absolute())), token_hex(8))
        plan = {"point": asdict(point), "tier": tier._asdict() | {"path": str(tier.path)}, "below": str(below)}
        with allocated(self.cluster, point.nodes) as job:
            try:
                return self.steps(job, tier, point, plan)
            finally:
                with suppress(ToolError):  # the nodes may be gone
                    run_step(self.cluster, job, point.nodes, plan | {"do": "clear"})
                if not tier.node and tier.path.is_dir():  # remove what a failed node left, if visible from here
                    with suppress(OSError, TierError):  # the next point removes what is left
                        clear(tier.folder(self.target) / below)

    def steps(self, job: str, tier: Tier, point: Point, plan: Row) -> Row:
        """Run the steps of a point on allocated nodes, and return cells of the table."""
        found = run_step(self.cluster, job, point.nodes, plan | {"do": "prepare"})
        hosts, numa = ([each[key] for each in found] for key in ("host", "numa"))
        if point.set_name == PIN and min(map(len, numa)) < 2:
            raise LeftOutError("there is one NUMA node on a node, and nothing to pin to")
        shared, spread_s = compare_nodes(found, tier)
        files = files_text(point.processes * (point.nodes if shared else 1), point.file_bytes)
        self.check_room(tier, point.set_name, files, min(each["usable_bytes"] for each in found))
        way = {key: found[0][key] for key in ("engine", "direct")}
        plan |= {"how": {"way": way, "numa": numa, "shared": shared}}
        cells: Row = {"cpu_s": 0.0, SPANS: {}}
        for pattern in ("write", "read"):
            done = run_step(self.cluster, job, point.nodes, plan | {"do": pattern})
            cells[SPANS][pattern] = spans = [span for each in done for span in each["spans"]]
            cells |= cells_of(pattern, spans, point.nodes, point.concurrent)
            cells["cpu_s"] += sum(each["cpu_s"] for each in done)
            cells["fio_version"] = done[0]["fio_version"]
        return {
            **cells,
            **way,
            "host": " ".join(hosts),
            "kernel": " ".join(dict.fromkeys(each["kernel"] for each in found)),
            "fs_type": found[0]["fs_type"],
            "numa_nodes": len(numa[0]) or None,
            "read_by": OTHER_NODE if shared and point.nodes > point.concurrent else OTHER_PROCESS,
            "clock_spread_s": spread_s,
        }


def compare_nodes(found: Rows, tier: Tier) -> tuple[bool, float]:
    """Whether nodes see each other's files, and how far their clocks appear to differ, s.

    Raises
    ------
    ToolError
        If nodes differ, or if their clocks differ by more than :data:`CLOCKS_S`.
    """
    where, clocks_s = f"tier {tier.name!r}", [each["clock_s"] for each in found]
    for key in ("engine", "direct", "fs_type"):
        if len({each[key] for each in found}) > 1:
            each_text = ", ".join(f"{each[key]} on {each['host']}" for each in found)
            raise ToolError(f"nodes differ in {key}: {each_text}", where)
    seen, spread_s = {each["seen"] for each in found}, max(clocks_s) - min(clocks_s)
    if seen not in ({1}, {len(found)}):
        raise ToolError("some nodes see each other's files and others do not", where)
    if spread_s > CLOCKS_S:
        fast, slow = (found[clocks_s.index(most(clocks_s))]["host"] for most in (max, min))
        what = f"the clock of {fast} is {seconds(spread_s)} ahead of that of {slow}: their times cannot be compared"
        raise ToolError(what, fix="have the nodes' clocks set (NTP, PTP)")
    return seen == {len(found)}, spread_s


@contextmanager
def allocated(cluster: Cluster, nodes: int) -> Iterator[str]:
    """Allocate whole nodes and yield the job number; they are released on exit, or as soon as this process is gone."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process, its_input, its_output = start(cluster, cluster.allocation(nodes), said)
        job = ""
        try:
            await_grant(cluster, its_output, nodes)
            job = its_output.readline().strip()
            if not job:
                process.wait()
                said.seek(0)
                raise reason_of(said.read(), "allocation")
            yield job
        finally:
            its_input.close()  # so the command ends, once it has nodes, and its job counts as completed
            if not job:
                process.terminate()
            if wait_for_end(process) != 0:
                cluster.end()


def await_grant(cluster: Cluster, its_output: IO[str], nodes: int) -> None:
    """Wait until ``salloc`` says that it has nodes, or ends.

    Raises
    ------
    LeftOutError
        If waiting for nodes is useless.
    """
    looks = 0
    while not select.select([its_output], [], [], LOOK_S)[0]:
        why = cluster.waits_for()
        looks = looks + 1 if LASTING.search(why) else 0
        if looks == LOOKS:
            raise LeftOutError(f"Slurm has no {counted(nodes, 'node')} for one job: {why}")


def run_step(cluster: Cluster, job: str, nodes: int, plan: Row) -> Rows:
    """Have every node do its part of a step, once all are ready; return the answers in the order of the nodes.

    Raises
    ------
    ToolError
        If a node fails, or the step ends early; with the reason.
    """
    program = [sys.executable, "-m", "neurotier.storage.ior.node", json.dumps(plan)]
    process, its_input, its_output = start(cluster, cluster.step(job, nodes, program), subprocess.STDOUT)
    answers, said = Rows(), list[str]()
    try:
        for line in its_output:
            node, _, text = line.partition(": ")
            try:
                answers.append({"node": int(node), **json.loads(text)})
            except (ValueError, TypeError):  # a line of srun, or other output of a program
                print(line, end="", file=sys.stderr, flush=True)
                said.append(line)
            if len(answers) == nodes:
                with suppress(BrokenPipeError):  # srun has ended; its output says why
                    its_input.write("begin\n")
                    its_input.flush()
    except BaseException:
        process.terminate()
        raise
    finally:
        exit_code = wait_for_end(process)
    if failed := next((answer for answer in answers if "error" in answer), None):
        raise ToolError(failed["error"])
    if exit_code or len(answers) < 2 * nodes:
        raise reason_of("".join(said), f"step {plan['do']}")
    return sorted(answers[nodes:], key=lambda answer: int(answer["node"]))


def start(cluster: Cluster, command: Sequence[str], stderr: Any) -> tuple[subprocess.Popen[str], IO[str], IO[str]]:
    """Start a Slurm command; return it with its input and its output.

    Raises
    ------
    ToolError
        If it cannot be started.
    """
    pipes: Row = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr, "errors": "replace"}
    try:  # in a session of its own, so that Ctrl-C does not reach srun, which would ask for confirmation
        process: Any = start_process(command, env=cluster.environment, start_new_session=True, **pipes)
        return process, process.stdin, process.stdout
    except OSError as error:
        raise ToolError(f"{command[0]} cannot be started: {error.strerror}", "target ior") from None


def wait_for_end(process: subprocess.Popen[str]) -> int:
    """Wait for a command that is about to end, kill it if it does not, and return its exit code."""
    try:
        return process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def reason_of(said: str, where: str) -> NeurotierError:
    """The error for a step or an allocation that ended, judging by Slurm's messages.

    >>> str(reason_of("srun: error: Node failure on n3\\nsrun: Job step aborted", "step write"))
    'step write: node n3 failed or was set down; start the same command again when it is back'
    """
    for pattern, what, fix in REASONS:
        if found := re.search(pattern, said):
            return ToolError(found.expand(what), where, fix)
    words = re.findall(r"^s\w+: error: (.*)", said, re.MULTILINE) or [said or "it said nothing"]
    never = "node configuration is not available" in said  # other reasons, such as a drained partition, will pass
    return (LeftOutError if never else ToolError)(f"Slurm: {one_line('; '.join(words))}", where)
