"""The drafted profile: YAML that Snakemake reads as meant, whatever Slurm's names are."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from neurotier.__main__ import main
from neurotier.core.errors import SourceError
from neurotier.core.settings import TierSettings
from neurotier.core.tiers import Tier
from neurotier.run.site import BASE, BETWEEN, Mine, draft, nodes_in, profile_of
from snakemake.profiles import ProfileConfigFileParser
from snakemake.resources import Resource
from snakemake_executor_plugin_slurm import ExecutorSettings
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from support import script

PARAMETERS = ("run_uuid", "slurm_logfile", "comment_str", "workdir")
"""What the plugin passes for a job beside its resources."""

ODD = ("all", "max", "1e3", "no")
"""Names that Slurm may have, which YAML or Snakemake would take for something else."""

WEIRD = ("a: b", "x\ny: z", "$(touch here)", "__import__('os').abort()", "# x", "'", "-p", "ü")


def nodes(partition: str, **changes: str) -> str:
    """A line of sinfo."""
    cells = {"up": "up", "limit": "infinite", "cpus": "24", "memory": "64000", "disk": "0", "features": "(null)"}
    cells |= {"gres": "(null)", "count": "4"} | changes
    return BETWEEN.join([partition, *cells.values()]) + "\n"


def evaluated(profile: str, folder: Path, name: str) -> object:
    """A default resource, as Snakemake evaluates that of a profile."""
    file = folder / "profile.yaml"
    file.write_text(profile)
    with file.open() as stream:
        entries = ProfileConfigFileParser().parse(stream)["default-resources"]
    value = dict(entry.split("=", 1) for entry in entries)[name]
    return Resource.cli_evaluator(name, value, wildcards=None, input=None, attempt=1, threads=1, async_run=None)


@pytest.mark.parametrize("name", ODD + WEIRD)
def test_whatever_the_names_are_the_profile_means_them_or_leaves_them_out(name: str, tmp_path: Path) -> None:
    on_a_line = name.replace("\n", " ")
    sinfo = nodes(f"{on_a_line}*", features=on_a_line)
    text = profile_of(nodes_in(sinfo), {}, Mine({name: name}, [], {}))
    profile = yaml.safe_load(text)
    base = yaml.safe_load(BASE.read_text())
    assert profile.keys() == base.keys()
    own = profile["default-resources"]
    for key in ("slurm_partition", "slurm_account"):
        if key in own:
            assert evaluated(text, tmp_path, key) == name
    assert ("slurm_account" in own) == (name in ODD)
    assert {key: own[key] for key in base["default-resources"]} == base["default-resources"]
    assert not (Path.cwd() / "here").exists()


def test_the_draft_is_of_the_default_partition_and_its_smallest_node() -> None:
    sinfo = nodes("big", memory="900000") + nodes("main*", memory="5000", cpus="2") + nodes("main*", memory="7000+")
    profile = yaml.safe_load(profile_of(nodes_in(sinfo), {}, Mine({"lab": "lab"}, [], {})))
    assert profile["default-resources"]["slurm_partition"] == "'main'"
    assert (profile["resources"]["mem_mb"], profile["cores"]) == (5000, 2)
    assert profile["config"]["shares"] == {"at_once": 4}, "without a limit of time, a job has the usual participants"


PARTITIONS = """
closed: {AllowAccounts: others}
odd: {DenyAccounts: lab}
staff: {AllowGroups: 'staff,wheel'}
open: {AllowGroups: root, MaxMemPerNode: '2500', MaxCPUsPerNode: '3', QoS: few}
"""


def test_nothing_is_asked_for_that_the_site_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getgroups", lambda: [0, 4_000_001])  # the second has no name
    sinfo = nodes("closed*") + nodes("odd") + nodes("staff") + nodes("open", limit="1-00:00:00")
    partitions = yaml.safe_load(PARTITIONS)
    mine = Mine({"lab": "lab"}, [(120, 20)], {"few": (None, 10), "other": (1, 1)})
    text = profile_of(nodes_in(sinfo), partitions, mine)
    profile = yaml.safe_load(text)
    assert profile["default-resources"]["slurm_partition"] == "'open'"
    assert (profile["resources"]["mem_mb"], profile["cores"], profile["jobs"]) == (2500, 3, 10)
    asked = [profile["default-resources"], *profile["set-resources"].values()]
    assert max(each.get("mem_mb", 0) for each in asked) == 2500
    assert max(each.get("runtime", 0) for each in asked) == 120
    assert profile["config"]["shares"] == {"at_once": 4}  # 16 participants take 60 min, and 120 once more
    few = yaml.safe_load(profile_of(nodes_in(nodes("main*", limit="30:00")), {}, mine))
    assert few["config"]["shares"]["participants"] == 4
    assert "# - run_campaign: runtime 1440, which is more than the 120 that a job may have" in text
    assert "closed" not in text
    assert "no partition takes your jobs" in profile_of(nodes_in(nodes("closed*")), partitions, mine)


OPTIONS = """\
--exclusive
--mail-type=FAIL,TIME_LIMIT
--mail-user=you@example.org
--qos=normal
-C 'icelake&nvme'
--gres=tmp:50G
--requeue
--mem 1000
-t 30
"""


class Resources(dict[str, object]):
    """Resources of a job, as Snakemake gives them to plugins: items that are attributes, too."""

    __getattr__ = dict.get


def test_the_plugin_takes_every_key_of_the_example(tmp_path: Path) -> None:
    text = (BASE.parents[1] / "site-example/profile.yaml").read_text()
    profile = yaml.safe_load(text)
    asked = [yaml.safe_load(each)["set-resources"] for each in (text, BASE.read_text())]
    assert asked[0].keys() - {"write_report"} == asked[1].keys(), "it stands in the place of profiles/slurm"
    names = profile["default-resources"]
    job = SimpleNamespace(resources=Resources({name: evaluated(text, tmp_path, name) for name in names}), threads=4)
    validate_slurm_extra(job)
    settings = ExecutorSettings(qos=profile["slurm-qos"], requeue=profile["slurm-requeue"], status_command="squeue")
    call = get_submit_command(job, {**dict.fromkeys(PARAMETERS, ""), "account": "", "partition": ""}, settings)
    call += set_gres_string(job)
    assert [option for option in OPTIONS.splitlines() if option not in call] == []
    assert (job.resources["slurm_account"], job.resources["slurm_partition"]) == ("neurolab", "compute")
    tier = profile["config"]["tiers"]["scratch"]
    assert Tier.from_settings(TierSettings(name="scratch", capacity=None, **tier)).node


SAYS = {
    "sinfo": r"echo 'main*|up|infinite|24|5000|0|(null)|(null)|4' | tr '|' '\037'",
    "scontrol": "echo PartitionName=main AllowGroups=ALL {names} AllowQos=ALL",
    "sacctmgr": """echo "Accounting is away on Monday, 8 to 10"
case $* in
*Lineage*) {lineage};;
*user=*) printf 'another||normal||\\nsublab||normal||\\n';;
*DefaultAccount*) echo 'sublab|me';;
esac""",
}
"""What Slurm's commands print of a user's default account ``sublab``, which is below ``dept``, after a notice of the
site."""


@pytest.mark.parametrize(
    ("names", "lineage", "partition"),
    [
        ("AllowAccounts=dept,other", "echo 'sublab|/dept/sublab/0-me/'", "'main'"),
        ("DenyAccounts=dept", "echo 'sublab|/dept/sublab/0-me/'", None),
        ("AllowAccounts=dept", "echo \"Unknown field 'Lineage'\" >&2; exit 1", None),
        ("DenyAccounts=dept", "echo \"Unknown field 'Lineage'\" >&2; exit 1", "'main'"),
        ("AllowAccounts=sublab", "exit 1", "'main'"),
    ],
)
def test_accounts_that_a_partition_names_mean_those_below_them_in_newer_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, lineage: str, partition: str | None
) -> None:
    """As 24.11 and 22.05 print it."""
    for name, says in SAYS.items():
        script(tmp_path / name, says.replace("{names}", names).replace("{lineage}", lineage))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    own = yaml.safe_load(draft())["default-resources"]
    assert (own.get("slurm_partition"), own["slurm_account"]) == (partition, "'sublab'")


def test_without_slurm_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["site"]) == SourceError.exit_code
    line = "neurotier: site: there is no sinfo; run it on a login node of a Slurm cluster\n"
    assert capsys.readouterr() == ("", line)
