"""Draft a cluster's profile from what its Slurm says about partitions, nodes and accounts.

The draft is ``profiles/slurm`` with the site's values, so that what was learnt about that profile is kept in one place.
Names of partitions and accounts are the site's: one with a special meaning in YAML, in Snakemake (which evaluates
resources) or in a shell is shown, but not used.
"""

from __future__ import annotations

import grp
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import yaml

from neurotier.core.errors import SourceError, one_line
from neurotier.core.files import Record
from neurotier.core.installed import ROOT
from neurotier.core.private import user_name
from neurotier.core.quantities import aligned
from neurotier.run import slurm
from neurotier.run.participants import PARTICIPANTS_OF_A_JOB

BASE = ROOT / "profiles" / "slurm" / "profile.yaml"
"""The profile that the draft is based on."""

MINUTES = 15
"""Default of ``shares.minutes_per_participant``."""

BETWEEN = "\x1f"
"""Separator of columns, which occurs in no name."""

COLUMNS = {
    "partition": "%P",
    "up": "%a",
    "limit": "%l",
    "cpus": "%c",
    "memory": "%m",
    "disk": "%d",
    "features": "%f",
    "gres": "%G",
    "nodes": "%D",
}
"""Columns of sinfo; memory and local disk in MB."""

Nodes = dict[str, str]
"""A group of similar nodes in a partition: one line of sinfo."""


Limits = tuple[int | None, int | None]
"""Longest time of a job, min, and largest number of jobs waiting or running at once; ``None`` for no limit."""


class Mine(NamedTuple):
    """What Slurm's accounting says about this user.

    The accounts, the default one first, each with its path in the tree of accounts, separated by slashes, where
    accounting gives one: a partition that names an account above it means it, too. Then the limits of the first
    account, and those of each QOS, since a partition may have one.
    """

    accounts: Mapping[str, str]
    limits: Sequence[Limits]
    qos: Mapping[str, Limits]


def draft() -> str:
    """The profile, as text with comments.

    Raises
    ------
    SourceError
        If there is no Slurm here, or it does not answer.
    """
    text, why = slurm.run_command("sinfo", "--noheader", f"--format={BETWEEN.join(COLUMNS.values())}")
    nodes = nodes_in(text)
    if why or not nodes:
        raise SourceError(why or "sinfo names no partition", "site", "run it on a login node of a Slurm cluster")
    partitions = (
        dict(re.findall(r"(\w+)=(\S*)", line, re.ASCII))
        for line in slurm.run_command("scontrol", "--oneliner", "show", "partition")[0].splitlines()
    )
    return profile_of(nodes, {facts.get("PartitionName", ""): facts for facts in partitions}, read_accounting())


def read_accounting() -> Mine:
    """What accounting says about this user; empty if there is no accounting."""

    def rows(*asked: str) -> list[list[str]]:
        return [
            line.split("|")
            for line in slurm.run_command("sacctmgr", "--noheader", "--parsable2", "show", *asked)[0].splitlines()
            if line.count("|") == asked[-1].count(",")  # other lines are notices of the site
        ]

    mine = "associations", "where", f"user={user_name()}"
    usual = rows("user", "where", f"name={user_name()}", "format=DefaultAccount,User")
    own = rows(*mine, "format=Account,DefaultQOS,QOS,MaxWall,MaxSubmitJobs")
    # Lineage, in Slurm 23.11 and later: LAB|/DEPARTMENT/LAB/0-USER/
    accounts = {row[0]: row[0] for row in [*usual, *own]} | dict(rows(*mine, "format=Account,Lineage"))
    first = [row for row in own if row[0] == next(filter(is_plain, accounts), None)]
    qos = {
        row[0]: (minutes_of(row[1]), slurm.number(row[2]))
        for row in rows("qos", "format=Name,MaxWall,MaxSubmitJobsPerUser")
    }
    limits = [(minutes_of(row[3]), slurm.number(row[4])) for row in first]
    limits += [qos[name] for row in first if (name := row[1] or row[2]) in qos]  # its default QOS, or its only one
    return Mine(accounts, limits, qos)


def least(limits: Iterable[int | None]) -> int | None:
    """The smallest of some limits; ``None`` means no limit."""
    return min((limit for limit in limits if limit is not None), default=None)


def minutes_of(text: str) -> int | None:
    """Whole minutes of a time in Slurm's format; ``None`` if it is unlimited."""
    duration_s = slurm.duration_s(text)
    return None if duration_s is None else int(duration_s / 60)


def nodes_in(text: str) -> list[Nodes]:
    """The groups of nodes in sinfo's output."""
    lines = [line.split(BETWEEN) for line in text.split("\n")]
    return [dict(zip(COLUMNS, cells, strict=True)) for cells in lines if len(cells) == len(COLUMNS)]


def is_plain(name: str) -> bool:
    """Whether a name has no special meaning in YAML, in Snakemake or in a shell.

    >>> [is_plain(name) for name in ("gpu-long_2", "a b", "$(date)", "x\\n", "-p")]
    [True, False, False, False, False]
    """
    return re.fullmatch(r"\w[\w.+@-]*", name, re.ASCII) is not None


def is_open(facts: Nodes, account: str) -> bool:
    """Whether a partition accepts this user's jobs under an account, as far as Slurm says; ``account`` includes its
    path."""
    groups = set()
    for group in os.getgroups():
        with suppress(KeyError):  # a group without a name on this machine
            groups.add(grp.getgrgid(group).gr_name)

    def among(names: str | None, own: set[str]) -> bool:
        return names in (None, "ALL", "(null)") or not own.isdisjoint(names.split(","))

    own = set(account.split("/"))
    return (
        among(facts.get("AllowGroups"), groups)
        and among(facts.get("AllowAccounts"), own)
        and own.isdisjoint(facts.get("DenyAccounts", "(null)").split(","))
    )


def choose_partition(nodes: Iterable[Nodes]) -> str:
    """The partition for jobs: the default one (``*``), or the first that is up; empty if there is none."""
    up = (each["partition"] for each in nodes if each["up"] == "up" and is_plain(each["partition"].removesuffix("*")))
    return min(up, key=lambda name: not name.endswith("*"), default="")


def profile_of(nodes: Sequence[Nodes], partitions: Mapping[str, Nodes], mine: Mine) -> str:
    """The text of the profile.

    Parameters
    ----------
    nodes
        The groups of nodes, each with its partition.
    partitions
        What the controller says about each partition, by its name.
    mine
        What accounting says about the user.
    """
    profile: Record = yaml.safe_load(BASE.read_text())
    account = next(filter(is_plain, mine.accounts), "")
    nodes = [
        each
        for each in nodes
        if is_open(partitions.get(each["partition"].removesuffix("*"), {}), mine.accounts.get(account, ""))
    ]
    partition = choose_partition(nodes)
    own = [each for each in nodes if each["partition"] == partition]
    name = partition.removesuffix("*")
    facts = partitions.get(name, {})
    limits = [*mine.limits, mine.qos.get(facts.get("QoS", ""), (None, None))]
    # Snakemake evaluates resources as Python where it can ("all" is a function of it), hence quotes within quotes.
    resources = {
        key: repr(value) for key, value in {"slurm_account": account, "slurm_partition": name}.items() if value
    }
    profile["default-resources"] = resources | profile["default-resources"]
    most = {
        "mem_mb": least(map(slurm.number, [*(each["memory"] for each in own), facts.get("MaxMemPerNode", "")])),
        "runtime": least([*(minutes_of(each["limit"]) for each in own), *(minutes for minutes, _ in limits)]),
    }
    if most["mem_mb"]:
        profile["resources"]["mem_mb"] = most["mem_mb"]
    cpus = [facts.get("MaxCPUsPerNode", ""), *(each["cpus"] for each in own)]
    profile["cores"] = least([profile["cores"], *map(slurm.number, cpus)])
    profile["jobs"] = least([profile["jobs"], *(jobs for _, jobs in limits)])
    shares = profile["config"]["shares"]
    fit = shares["at_once"] * max(1, most["runtime"] // (2 * MINUTES)) if most["runtime"] else math.inf
    if fit < PARTICIPANTS_OF_A_JOB:  # otherwise a second attempt, which asks for twice the time, would wait for ever
        shares["participants"] = fit
    cut = []
    for rule, asked in {"default": profile["default-resources"], **profile["set-resources"]}.items():
        for name, limit in most.items():
            if limit and asked.get(name, 0) > limit:
                cut.append(f"- {rule}: {name} {asked[name]}, which is more than the {limit} that a job may have")
                asked[name] = limit
    head = [
        "Drafted by `neurotier site` from what this cluster's Slurm says; what is not the site's is explained in",
        "profiles/slurm, and more keys in profiles/site-example.",
        "Read it, correct it, and have each kind of job tried:",
        "  snakemake --snakefile profiles/try.smk --profile FOLDER-OF-THIS-FILE --directory tried",
        "",
        *([] if partition else ["By what Slurm says, no partition takes your jobs: ask those who run the cluster."]),
        "Partitions that take your jobs (the default one has a star) and their nodes, memory and local disk in MB:",
        *aligned([[*COLUMNS], *([one_line(cell) for cell in each.values()] for each in nodes)]),
        *([f"Your accounts: {', '.join(map(one_line, mine.accounts))}"] if mine.accounts else []),
        *(["Less is requested than usual; if that is too short, start the same command again:"] if cut else []),
        *cut,
    ]
    comment = "".join(f"# {line}".rstrip() + "\n" for line in head)
    parts = [yaml.safe_dump({key: value}, sort_keys=False, width=10_000) for key, value in profile.items()]
    return "\n".join([comment, *parts])
