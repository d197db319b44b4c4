"""A profile's ``config:`` stands, whatever else the command line configures."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from neurotier.core.errors import SettingsError
from neurotier.run.profile_config import effective_config, read_command
from support import ROOT

told_by = partial(read_command, snakefile=ROOT / "workflow" / "Snakefile")
BASE = {"placement": {"work": "local", "results": "local"}, "results": "results"}


@pytest.fixture(autouse=True)
def in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NEUROTIER_COMMAND", "[{}]")  # so that it is put back


def test_command_line_wins_over_profile() -> None:
    arguments = ["--workflow-profile", "profiles/tmpfs", "--config", "placement={work: nfs}"]
    effective = effective_config(BASE, {"placement": {"work": "nfs"}}, told_by(arguments).config)
    assert effective["placement"]["work"] == "nfs"


def test_workflow_profile_wins_over_general_profile(tmp_path: Path) -> None:
    general = tmp_path / "cluster"
    general.mkdir()
    (general / "profile.yaml").write_text("config:\n  placement: {work: nfs, images: nfs}\n")
    arguments = ["--profile", str(general), "--workflow-profile", "profiles/tmpfs"]
    assert told_by(arguments).config == {"placement": {"work": "tmpfs", "images": "nfs"}}


@pytest.mark.parametrize(
    "text",
    ["__use_yte__: true\nconfig:\n results: ?'of-' + 'mine'", "config: results=of-mine", "config: [results=of-mine]"],
)
def test_profile_is_read_as_snakemake_reads_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "profile.yaml").write_text(text)
    assert told_by(["--profile", str(tmp_path)]).config == {"results": "of-mine"}


def test_profile_is_meant_from_where_the_command_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", str(ROOT))
    monkeypatch.chdir(tmp_path)  # as Snakemake has, when the workflow is read
    arguments = ["--workflow-profile", "profiles/tmpfs"]
    assert told_by(arguments, directory=tmp_path).config == {"placement": {"work": "tmpfs"}}


def test_a_profile_may_name_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "config.yaml").write_text("directory: run\nexecutor: cluster-generic\nconfig: [results=a]\n")
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.chdir(tmp_path / "run")
    said = told_by(["--profile", "mine"], directory=Path("run"))
    assert (said.config, said.executor) == ({"results": "a"}, "cluster-generic")


def test_profile_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SettingsError, match="there is no such workflow profile"):
        told_by(["--workflow-profile", "profiles/nope"])


def test_jobs_on_other_nodes_see_the_same() -> None:
    told_by(["--workflow-profile", "profiles/tmpfs"])
    assert effective_config(BASE, {}, told_by(None).config)["placement"]["work"] == "tmpfs"


def test_nodes_are_of_the_class_of_their_partition(tmp_path: Path) -> None:
    cluster = ["--profile", "profiles/slurm"]
    assert told_by(cluster).node_class == "nodes"
    given = [*cluster, "--default-resources", "slurm_partition=long", "constraint='haswell&big'", "mem_mb=1000"]
    assert told_by(given).node_class == "long-haswell_big"
    assert told_by(None).node_class == "long-haswell_big"  # a job is not given the command line
    (tmp_path / "profile.yaml").write_text("default-resources: {slurm_partition: ../../short}\n")
    assert told_by(["--profile", str(tmp_path)]).node_class == "short"
    assert told_by(["--profile", str(tmp_path), "--default-resources", "mem_mb=1"]).node_class == "nodes"
