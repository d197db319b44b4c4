"""The part of one node in a step of a point: ``python -m neurotier.storage.ior.node PLAN``, started there by ``srun``.

It reports that it is ready, waits for the line on which all nodes begin, and answers with a line of JSON.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from neurotier.core.errors import NeurotierError, ToolError
from neurotier.core.files import Record
from neurotier.core.private import clear, make_private, names_in, remove_private
from neurotier.core.processes import postpone
from neurotier.core.tiers import Tier
from neurotier.storage.fio import BUFFERED, Access, find_access, require_fio
from neurotier.storage.ior.points import FILES, PIN, Point, job_of, node_file, run_logged, writer_for
from neurotier.storage.numa import own_nodes
from neurotier.storage.workspace import Workspace, patience_s, tier_facts

MARK = "node.{}"
"""Name of a file by which other nodes can see this one."""


def prepare(point: Point, tier: Tier, folder: Path, own: int) -> Record:
    """Claim the tier, remove leftovers, and find the best way to access files.

    Returns
    -------
    dict
        What the node is like, how it accesses files, and how many nodes it sees.

    Raises
    ------
    TierError
        If the tier is not as declared.
    ToolError
        If there is no fio.
    """
    require_fio("target ior")
    tier.claim()
    for name in names_in(folder.parent):
        if name != folder.name:  # left by a point that was killed: a results folder has only one at a time
            remove_private(folder.parent / name)
    make_private(folder)
    way = BUFFERED
    if point.wants_direct:
        trial = folder / f"trial.{own}"
        make_private(trial)
        way = find_access(trial, tier.kind, point.block_bytes)
        remove_private(trial)
    numa = own_nodes() if point.set_name == PIN else ()
    (folder / MARK.format(own)).touch()
    ready()
    return {
        "clock_s": time.time(),
        "seen": sum(os.path.lexists(folder / MARK.format(node)) for node in range(point.nodes)),
        **asdict(way),
        "numa": numa,
        "usable_bytes": tier.usable_bytes(),
        **tier_facts(tier),
        "kernel": platform.release(),
    }


def move(
    point: Point,
    tier: Tier,
    folder: Path,
    own: int,
    do: str,
    way: Record,
    numa: list[list[int]],
    shared: bool,
) -> Record:
    """Write files, or read those that another node wrote if they are visible; return when each process began and ended.

    Raises
    ------
    TierError
        If the tier fills up.
    ToolError
        If fio fails, or the files to read are not there.
    """
    whose = writer_for(own, point.nodes, point.concurrent) if do == "read" and shared else own
    job = job_of(point, do, Access(**way), numa[own], whose, own)
    ready()
    if do == "read":
        files = [folder / node_file(whose, process) for process in range(point.processes)]
        if not all(file.is_file() and file.stat().st_size == point.file_bytes for file in files):
            what = f"does not see all that node {whose + 1} has written"
            raise ToolError(what, folder, "see how the file system keeps nodes in step")
        job = replace(job, options={"allow_file_create": "0"})  # otherwise fio creates missing files
    done, spans = run_logged(Workspace(FILES, tier, folder), job, patience_s(point.written_bytes), own)
    return {"spans": spans, "cpu_s": done.cpu_s, "fio_version": done.fio_version}


def say(answer: Record) -> None:
    """Print an answer as a line of JSON."""
    print(json.dumps(answer), flush=True)


def ready() -> None:
    """Report that this node is ready, and wait until all are; end if the caller is gone."""
    say({})
    if not sys.stdin.readline():
        sys.exit(1)


def unwind(number: int, _frame: object) -> None:
    """End this process on a signal, and fio with it."""
    if not postpone(number):
        sys.exit(128 + number)


def main() -> int:
    """Do this node's part of a step; return the exit code.

    The plan has ``do`` (the step), ``point``, ``tier`` (as declared), ``below`` (path of the point's folder, relative
    to the target's folder on the tier), and for :func:`move` also ``how``.
    """
    signal.signal(signal.SIGTERM, unwind)
    try:
        plan = json.loads(sys.argv[1])
        tier = Tier(**{**plan["tier"], "path": Path(plan["tier"]["path"])}).here()
        folder, answer = tier.folder(FILES) / plan["below"], {}
        place = Point(**plan["point"]), tier, folder, int(os.environ["SLURM_PROCID"])
        if plan["do"] == "prepare":
            answer = prepare(*place)
        elif plan["do"] == "clear":
            ready()
            clear(folder)
        else:
            answer = move(*place, plan["do"], **plan["how"])
        say(answer)
    except (NeurotierError, OSError) as error:
        say({"error": f"{error} (on {socket.gethostname()})"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
