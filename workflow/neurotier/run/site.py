"""A draft of a cluster's profile, from what its Slurm says of partitions, nodes, accounts and accounting.

It is ``profiles/slurm`` with the site's values, so what that profile has learnt is kept in one place. Names are data
of somebody else: one that could mean more than itself in YAML, in Snakemake (which evaluates resources) or in a shell
is told of, and not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml

from neurotier.core.errors import SourceError, one_line
from neurotier.core.installed import ROOT
from neurotier.core.private import user_name
from neurotier.core.quantities import counted
from neurotier.run import slurm

BASE = ROOT / "profiles" / "slurm" / "profile.yaml"
"""The profile that the draft begins with."""

BETWEEN = "\x1f"
"""Stands between columns: no name has it."""

COLUMNS = ("%P", "%a", "%l", "%c", "%m", "%d", "%f", "%G", "%D")
"""sinfo: partition, whether it is up, time limit, CPUs, memory (MB), local disk (MB), features, gres, nodes."""

LEAST_AGE_S = 200
"""How long squeue must know jobs that have ended: Snakemake asks every 180 s, when nothing happens."""

NEEDED_MINUTES = 120
"""What a job of ``profiles/slurm`` asks for on its second attempt, min."""

LONGEST = 120
"""Most letters of a name in a comment."""


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are alike.

    Attributes
    ----------
    partition, is_default, is_up
        The partition, whether jobs go there unasked, and whether it takes jobs.
    limit
        Its time limit as Slurm writes it.
    cpus, memory_mb, disk_mb
        Of each node: CPUs, memory and local disk (MB); ``None`` if Slurm does not say, and 0 for no disk.
    features, gres, count
        Features and generic resources, as Slurm lists them; number of nodes.
    """

    partition: str
    is_default: bool
    is_up: bool
    limit: str
    cpus: int | None
    memory_mb: int | None
    disk_mb: int | None
    features: str
    gres: str
    count: int | None


@dataclass
class Site:
    """What was found out about a cluster.

    Attributes
    ----------
    nodes, config
        The nodes; the controller's configuration.
    accounts, qos
        What the user may use, most used first.
    missing
        What could not be found, a line each.
    """

    nodes: list[Nodes]
    config: Mapping[str, str] = field(default_factory=dict)
    accounts: list[str] = field(default_factory=list)
    qos: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def draft() -> str:
    """The profile, as text with comments.

    Raises
    ------
    SourceError
        If there is no Slurm here, or it does not answer.
    """
    text, why = slurm.answer("sinfo", "--noheader", f"--format={BETWEEN.join(COLUMNS)}")
    nodes = nodes_in(text)
    if why or not nodes:
        raise SourceError(
            why or "sinfo names no partition", where="neurotier site", fix="run it on a login node of a Slurm cluster"
        )
    site = Site(nodes)
    config, why = slurm.answer("scontrol", "show", "config")
    site.config = config_in(config)
    if why:
        site.missing.append(f"the configuration of Slurm: {why}")
    if has_accounting(site):
        fields = "format=Account,QOS"
        listed, why = slurm.answer(
            "sacctmgr", "--noheader", "--parsable2", "show", "associations", "where", f"user={user_name()}", fields
        )
        rows = [line.split("|") for line in listed.splitlines()]
        site.accounts = list(dict.fromkeys(row[0] for row in rows if row[0]))
        site.qos = list(dict.fromkeys(qos for row in rows if len(row) > 1 for qos in row[1].split(",") if qos))
        if why or not site.accounts:
            site.missing.append(f"your accounts: {why or 'sacctmgr lists none of yours'}")
    return profile_of(site)


def nodes_in(text: str) -> list[Nodes]:
    r"""Nodes in what sinfo has printed.

    >>> nodes_in("main*\x1fup\x1f2-00:00:00\x1f24+\x1f5000\x1f0\x1f(null)\x1fgpu:a100:4\x1f4\n")[0].cpus
    24
    """
    found = []
    for line in text.split("\n"):
        cells = line.split(BETWEEN)
        if len(cells) == len(COLUMNS):
            name, up, limit, cpus, memory, disk, features, gres, count = cells
            said = [None if cell in ("(null)", "N/A") else cell for cell in (features, gres)]
            found.append(
                Nodes(
                    partition=name.removesuffix("*"),
                    is_default=name.endswith("*"),
                    is_up=up == "up",
                    limit=limit,
                    cpus=number(cpus),
                    memory_mb=number(memory),
                    disk_mb=number(disk),
                    features=said[0] or "",
                    gres=said[1] or "",
                    count=number(count),
                )
            )
    return found


def number(text: str) -> int | None:
    """A whole number, of which ``+`` says that some have more."""
    found = re.fullmatch(r"(\d+)\+?", text, re.ASCII)
    return int(found[1]) if found else None


def config_in(text: str) -> dict[str, str]:
    """The entries of ``scontrol show config``."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def has_accounting(site: Site) -> bool:
    """Whether Slurm keeps accounts of jobs; where it is not known, it is asked."""
    return not site.config.get("AccountingStorageType", "").endswith("none")


def is_plain(name: str) -> bool:
    """Whether a name means itself wherever it is written.

    >>> [is_plain(name) for name in ("gpu-long_2", "a b", "$(date)", "x\\n", "-p")]
    [True, False, False, False, False]
    """
    return re.fullmatch(r"\w[\w.+@-]*", name, re.ASCII) is not None


def told(text: str) -> str:
    """Anything as a part of a comment, on one line."""
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def chosen(site: Site) -> str | None:
    """The partition that jobs are given to: the default one, or the first that takes jobs."""
    usable = [nodes for nodes in site.nodes if nodes.is_up and is_plain(nodes.partition)]
    return next((nodes.partition for nodes in sorted(usable, key=lambda nodes: not nodes.is_default)), None)


def minutes_of(limit: str) -> int | None:
    """A time limit of Slurm, min; ``None`` if there is none.

    >>> minutes_of("2-12:00:00"), minutes_of("30:00"), minutes_of("infinite")
    (3600, 30, None)
    """
    days, _, rest = limit.rpartition("-")
    with suppress(ValueError):
        hours, minutes, _ = ([0, 0, 0] + [int(part) for part in rest.split(":")])[-3:]
        return 1440 * int(days or 0) + 60 * hours + minutes
    return None


def profile_of(site: Site) -> str:
    """The text of the profile."""
    profile: dict[str, Any] = yaml.safe_load(BASE.read_text())
    partition = chosen(site)
    own = [nodes for nodes in site.nodes if nodes.partition == partition]
    notes: dict[str, list[str]] = {}
    accounts = [name for name in site.accounts if is_plain(name)]
    # Snakemake evaluates resources as Python where it can ("all" is a function of it), hence quotes within quotes.
    names = {"slurm_account": accounts[0] if accounts else None, "slurm_partition": partition}
    resources = {key: repr(name) for key, name in names.items() if name is not None}
    profile["default-resources"] = resources | profile["default-resources"]
    memories = [nodes.memory_mb for nodes in own if nodes.memory_mb]
    if memories:
        profile["resources"] = {**profile["resources"], "mem_mb": min(memories)}
    else:
        site.missing.append("the memory of a node: resources.mem_mb is that of profiles/slurm")
    cpus = [nodes.cpus for nodes in own if nodes.cpus]
    if cpus:
        profile["cores"] = min(profile["cores"], *cpus)
    age_s = number(site.config.get("MinJobAge", "").partition(" ")[0])
    if age_s is not None and age_s < LEAST_AGE_S and has_accounting(site):
        profile["slurm-status-command"] = "sacct"
        notes["slurm-status-command"] = [f"squeue forgets jobs {age_s} s after their end (MinJobAge)."]
    limits = [minutes for nodes in own if (minutes := minutes_of(nodes.limit)) is not None]
    notes["default-resources"] = [*account_lines(site, accounts), *limit_lines(partition, limits)]
    notes["executor"] = qos_lines(site)
    notes["resources"] = ["The memory of the smallest node of the partition, MB, is the most that a job asks for."]
    notes["config"] = scratch_lines(site, own)
    head = [
        "Drafted by `neurotier site` from what this cluster's Slurm says; what is not the site's is explained in",
        "profiles/slurm.",
        "Read it, correct it, and use it:",
        "  snakemake --profile FOLDER-OF-THIS-FILE --workflow-profile profiles/local",
        "",
        *partition_lines(site),
    ]
    unsure = ["", "Not found:", *(f"- {told(line)}" for line in site.missing)] if site.missing else []
    parts = [comment([*head, *unsure])]
    parts += [
        comment(notes.get(key, [])) + yaml.safe_dump({key: value}, sort_keys=False, width=10_000)
        for key, value in profile.items()
    ]
    return "\n".join(parts)


def comment(lines: Iterable[str]) -> str:
    """Lines as a comment of YAML."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def partition_lines(site: Site) -> list[str]:
    """What there is, for people."""
    lines = ["Partitions and their nodes:"]
    for nodes in site.nodes:
        marks = [*(["default"] if nodes.is_default else []), *([] if nodes.is_up else ["takes no jobs"])]
        marks += [] if is_plain(nodes.partition) else ["not used for its name"]
        mark = f" ({', '.join(marks)})" if marks else ""
        has = [
            f"{nodes.cpus if nodes.cpus is not None else '?'} CPUs",
            f"{nodes.memory_mb if nodes.memory_mb is not None else '?'} MB",
            *([f"local disk {nodes.disk_mb} MB"] if nodes.disk_mb else []),
            *([f"features {told(nodes.features)}"] if nodes.features else []),
            *([f"gres {told(nodes.gres)}"] if nodes.gres else []),
        ]
        count = "?" if nodes.count is None else counted(nodes.count, "node")
        lines.append(f"- {told(nodes.partition)}{mark}: limit {told(nodes.limit)}; {count} with {', '.join(has)}")
    if any(nodes.features for nodes in site.nodes):
        lines.append("Features are chosen with a resource: constraint: \"'NAME'\".")
    if any(nodes.gres for nodes in site.nodes):
        lines.append("Generic resources are asked for with a resource: gres: \"'NAME:1'\".")
    return lines


def account_lines(site: Site, usable: Sequence[str]) -> list[str]:
    """What to say of the accounts."""
    if not has_accounting(site):
        return ["This Slurm has no accounting: no account is needed, and the report has less to tell of jobs."]
    others = [told(name) for name in site.accounts if name not in usable[:1]]
    return [f"Your other accounts: {', '.join(others)}"] if others else []


def limit_lines(partition: str | None, limits_min: Sequence[int]) -> list[str]:
    """What to say of the time limit."""
    if partition is None:
        return ["No partition takes jobs and has a name that can be used: name one, slurm_partition: \"'NAME'\"."]
    if limits_min and min(limits_min) < NEEDED_MINUTES:
        limit = f"The limit of the partition, {min(limits_min)} min, is shorter than what a job may ask for"
        return [f"{limit} ({NEEDED_MINUTES} min): set batches.participants or batches.minutes_per_participant lower."]
    return []


def qos_lines(site: Site) -> list[str]:
    """What to say of the quality of service."""
    if not site.qos:
        return []
    example = next((name for name in site.qos if is_plain(name)), "NAME")
    return [
        f"You may use the QOS {', '.join(map(told, site.qos))}; for another than the default:",
        f"slurm-qos: {example}",
    ]


def scratch_lines(site: Site, own: Sequence[Nodes]) -> list[str]:
    """What to say of storage on the nodes, which the controller knows little of."""
    folder = site.config.get("TmpFS", "")
    known = is_path(folder)
    disk = max((nodes.disk_mb or 0 for nodes in own), default=0)
    private = "tmpfs" in site.config.get("JobContainerType", "")
    lines = []
    if disk and known:
        lines.append(
            f"The nodes have local disk, {disk} MB at most, at {folder}" + (", each job its own." if private else ".")
        )
    else:
        lines.append("Slurm does not say whether nodes have local scratch space. Whether they set a folder for it:")
        lines.append("  srun printenv TMPDIR SLURM_TMPDIR")
    path = folder if disk and known and not private else "$TMPDIR"
    job = "" if private else "/$SLURM_JOB_ID"
    where = path + job if path != "$TMPDIR" else path
    lines += [
        "As a tier, below config:, once you know the path and its kind:",
        "  tiers:",
        f"    scratch: {{path: {where}, kind: block, node: true}}",
        "  placement:",
        "    work: scratch",
    ]
    return lines


def is_path(text: str) -> bool:
    """Whether a text is a path without anything special."""
    return re.fullmatch(r"/[\w./-]*", text, re.ASCII) is not None
