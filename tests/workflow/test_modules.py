"""The workflow as a module of others: two in one Snakefile, what snakedeploy writes, and prefixes."""

from __future__ import annotations

from typing import Any

import nibabel
import numpy as np
import pytest
import yaml
from modules import configuration, configure_two, counted_masks
from readmes import LINES
from support import Ended, Project, processes_in, sleeping, wait_for

DEPLOYED = """
configfile: "config/config.yaml"

module theirs:
    snakefile: "workflow/Snakefile"
    config: config
    {prefix}

use rule * from theirs as theirs_*
"""


def run(project: Project, *arguments: str, **sections: Any) -> Ended:
    return project.snakemake("--snakefile", "theirs.smk", "--workflow-profile", "none", *arguments, **sections)


def test_two_modules_have_a_configuration_each(project: Project) -> None:
    both = configure_two(project)
    ended = run(project).succeeded()
    assert len(ended.lines("Results: 1 of 1 participant done, 0 failed, 1 brain mask")) == 2, ended.output
    _, mask = counted_masks(project)
    mask.unlink()
    assert run(project, "group_comparison").succeeded().analysed == ["sub-two"]
    assert run(project, "--forcerun", "first_analyze_participants").succeeded().analysed == ["sub-one"]
    both["second"]["tool"] = {"name": "bet", "bet": {"command": "bet {input} {output}/brain -m -f 0.4"}}
    project.own.write_text(yaml.safe_dump(both))
    ended = run(project, "--forcerun", "second_analyze_participants").succeeded()
    assert ended.analysed == ["sub-two"], "they were removed, but what is made from them is there"
    counted_masks(project)
    both["second"] |= {"dataset": {"source": "demo"}, "results": "three"}
    project.own.write_text(yaml.safe_dump(both))
    run(project, "second_all", "--dry-run").succeeded()


@pytest.mark.nightly
def test_what_snakedeploy_writes_runs(project: Project) -> None:
    project.heads("01")
    (project.folder / "theirs.smk").write_text(DEPLOYED.format(prefix=""))
    run(project, tool="bet").succeeded().says("Results: 1 of 1 participant done, 0 failed, 1 brain mask")
    run(project, "--dry-run").says("Nothing to be done")


@pytest.mark.usefixtures("gnu_parallel", "spark")
@pytest.mark.nightly
def test_engines_of_a_module_are_those_that_are_asked_for(project: Project) -> None:
    """One script serves both, whose rules have other names there."""
    (project.folder / "theirs.smk").write_text(DEPLOYED.format(prefix=""))
    blocks = {"count": 2, "scale": 0.03, "parallelism": [1], "predict": False, "engines": ["gnu-parallel", "spark"]}
    run(project, "theirs_bigbrain", bigbrain=blocks).succeeded()
    assert project.columns("engine valid", "bigbrain/bigbrain_runs.tsv") == ["gnu-parallel valid", "spark valid"]
    assert project.table("bigbrain/bigbrain_spark.tsv"), "what Spark's own log has"


def test_a_prefix_is_refused_in_one_line(project: Project) -> None:
    project.heads("01")
    (project.folder / "theirs.smk").write_text(DEPLOYED.format(prefix='prefix: "elsewhere"'))
    run(project, tool="bet").failed().says("leave out prefix and replace_prefix")
    assert not (project.folder / "elsewhere").exists()


@pytest.mark.nightly
def test_example_goes_on_with_the_masks(project: Project) -> None:
    project.own.write_text(yaml.safe_dump(configuration(project.folder, "results")))
    project.succeeds("--snakefile", "config/examples/module/Snakefile")
    (mask,) = project.derivatives.rglob("sub-*_mask.nii.gz")
    template = nibabel.load(project.folder / "template.nii.gz")
    assert np.allclose(template.get_fdata(), nibabel.load(mask).get_fdata(), atol=1e-6)


def test_a_killed_run_of_the_example_goes_on_by_the_same_command(project: Project) -> None:
    """As everywhere: ``--unlock`` is never needed."""
    project.heads("01")
    command, *given = next(line for line in LINES if "module/Snakefile" in line).removesuffix(" --cores 2").split()
    killed = project.start("neurotier_participants", *given, tool=sleeping(300))
    wait_for(lambda: processes_in(project.folder, "sleep 300"), killed)
    killed.kill()
    killed.wait()
    assert command == "snakemake"
    ended = project.succeeds("neurotier_participants", *given, tool="noop")  # nobody is done who would be done again
    ended.says("Results: 1 of 1 participant done, 0 failed")


def test_failures_of_others_leave_the_pages_of_a_module_as_they_are(project: Project) -> None:
    """Files that are made from a page would be made again."""
    configure_two(project)
    with (project.folder / "theirs.smk").open("a") as more:
        more.write('\nrule fail:\n    input:\n        rules.first_all.input.report,\n    shell:\n        "false"\n')
    run(project, "first_all").succeeded()
    page = project.folder / "one/report.html"
    before = page.stat().st_mtime_ns
    assert run(project, "fail").failed().lines("Report: ") == []
    assert page.stat().st_mtime_ns == before
