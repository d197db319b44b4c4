"""A draft of a cluster's profile, from what its Slurm says of partitions, nodes and accounts.

It is ``profiles/slurm`` with the site's values, so what that profile has learnt is kept in one place. Names are data
of somebody else: one that could mean more than itself in YAML, in Snakemake (which evaluates resources) or in a shell
is shown, and not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from neurotier.core.errors import SourceError, one_line
from neurotier.core.installed import ROOT
from neurotier.core.private import user_name
from neurotier.core.quantities import aligned
from neurotier.run import slurm

BASE = ROOT / "profiles" / "slurm" / "profile.yaml"
"""The profile that the draft begins with."""

BETWEEN = "\x1f"
"""Stands between columns: no name has it."""

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
"""Nodes of a partition that are alike: a line of sinfo."""

LEAST_AGE_S = 200
"""How long squeue must know jobs that have ended: Snakemake asks every 180 s, when nothing happens."""


def draft() -> str:
    """The profile, as text with comments.

    Raises
    ------
    SourceError
        If there is no Slurm here, or it does not answer.
    """
    text, why = slurm.answer("sinfo", "--noheader", f"--format={BETWEEN.join(COLUMNS.values())}")
    nodes = nodes_in(text)
    if why or not nodes:
        raise SourceError(
            why or "sinfo names no partition", where="neurotier site", fix="run it on a login node of a Slurm cluster"
        )
    pairs = (line.partition("=") for line in slurm.answer("scontrol", "show", "config")[0].splitlines())
    asked = ("show", "associations", "where", f"user={user_name()}", "format=Account")
    accounts, _ = slurm.answer("sacctmgr", "--noheader", "--parsable2", *asked)
    config = {key.strip(): value.strip() for key, _, value in pairs}
    return profile_of(nodes, config, list(dict.fromkeys(filter(None, accounts.splitlines()))))


def nodes_in(text: str) -> list[Nodes]:
    """Nodes in what sinfo has printed."""
    lines = [line.split(BETWEEN) for line in text.split("\n")]
    return [dict(zip(COLUMNS, cells, strict=True)) for cells in lines if len(cells) == len(COLUMNS)]


def number(text: str) -> int | None:
    """A whole number, of which ``+`` says that some have more."""
    found = re.fullmatch(r"(\d+)\+?", text, re.ASCII)
    return int(found[1]) if found else None


def is_plain(name: str) -> bool:
    """Whether a name means itself wherever it is written.

    >>> [is_plain(name) for name in ("gpu-long_2", "a b", "$(date)", "x\\\\n", "-p")]
    [True, False, False, False, False]
    """
    return re.fullmatch(r"\w[\w.+@-]*", name, re.ASCII) is not None


def chosen(nodes: Iterable[Nodes]) -> str | None:
    """The partition that jobs are given to: the default one (``*``), or the first that takes jobs."""
    names = [each["partition"] for each in nodes if each["up"] == "up"]
    usable = [name for name in names if is_plain(name.removesuffix("*"))]
    return next(iter(sorted(usable, key=lambda name: not name.endswith("*"))), None)


def profile_of(nodes: Sequence[Nodes], config: Mapping[str, str], accounts: Sequence[str]) -> str:
    """The text of the profile.

    Parameters
    ----------
    nodes
        The nodes.
    config
        The controller's configuration.
    accounts
        What the user may use, most used first.
    """
    profile: dict[str, Any] = yaml.safe_load(BASE.read_text())
    partition = chosen(nodes)
    own = [each for each in nodes if each["partition"] == partition]
    names = {"slurm_account": next(filter(is_plain, accounts), None), "slurm_partition": partition}
    # Snakemake evaluates resources as Python where it can ("all" is a function of it), hence quotes within quotes.
    resources = {key: repr(name.removesuffix("*")) for key, name in names.items() if name is not None}
    profile["default-resources"] = resources | profile["default-resources"]
    if memories := [memory for each in own if (memory := number(each["memory"]))]:
        profile["resources"] = {**profile["resources"], "mem_mb": min(memories)}
    profile["cores"] = min([profile["cores"], *(cpus for each in own if (cpus := number(each["cpus"])))])
    has_accounting = not config.get("AccountingStorageType", "").endswith("none")
    age_s = number(config.get("MinJobAge", "").partition(" ")[0])
    if has_accounting and age_s is not None and age_s < LEAST_AGE_S:
        profile["slurm-status-command"] = "sacct"
    head = [
        "Drafted by `neurotier site` from what this cluster's Slurm says; what is not the site's is explained in",
        "profiles/slurm, and more keys in profiles/site-example.",
        "Read it, correct it, and use it:",
        "  snakemake --profile FOLDER-OF-THIS-FILE --workflow-profile profiles/local",
        "",
        "Partitions (the default one has a star) and their nodes, of which memory and local disk are in MB:",
        *aligned([[*COLUMNS], *([one_line(cell) for cell in each.values()] for each in nodes)]),
        *([f"Your accounts: {', '.join(map(one_line, accounts))}"] if accounts else []),
    ]
    comment = "".join(f"# {line}".rstrip() + "\n" for line in head)
    parts = [yaml.safe_dump({key: value}, sort_keys=False, width=10_000) for key, value in profile.items()]
    return "\n".join([comment, *parts])
