"""A Snakefile with two modules of this workflow, and what each is given."""

from __future__ import annotations

from pathlib import Path

import yaml
from support import Project, plain_dataset, small_head, t1w

TWO = """
module first:
    snakefile: "workflow/Snakefile"
    config: config["first"]

use rule * from first as first_*

use rule analyze_participants from first as first_analyze_participants with:
    priority: 3

use rule write_report from first as first_write_report with:
    priority: 3

module second:
    snakefile: "workflow/Snakefile"
    config: config["second"]

use rule * from second as second_*

rule count:
    default_target: True
    input:
        first="one/report.html",
        second="two/report.html",
    output:
        "count.txt",
    shell:
        "cat one/derivatives/sub-*/anat/*_mask.nii.gz two/derivatives/sub-*/anat/*_mask.nii.gz | wc -c"
        " > {output}"

# Named like targets of the modules, with another prefix.
rule group_comparison:
    input:
        "count.txt",
"""


def configuration(folder: Path, results: str) -> dict[str, object]:
    """A dataset of one participant, analysed in a folder of its own."""
    source = plain_dataset(folder / f"bids-{results}", {t1w(results): small_head()})
    whole = yaml.safe_load((folder / "config/config.yaml").read_text())
    return {**whole, "dataset": {"source": str(source)}, "tool": {"name": "bet"}, "results": results}


def configure_two(project: Project) -> dict[str, dict[str, object]]:
    """Have a project use both modules, in ``theirs.smk``; the configuration."""
    (project.folder / "theirs.smk").write_text(TWO)
    both = {"first": configuration(project.folder, "one"), "second": configuration(project.folder, "two")}
    project.own.write_text(yaml.safe_dump(both))
    return both


def counted_masks(project: Project) -> list[Path]:
    """The masks of both modules, of which the Snakefile's own rule has counted the bytes."""
    masks = [mask for name in ("one", "two") for mask in (project.folder / name).rglob("sub-*_mask.nii.gz")]
    assert int((project.folder / "count.txt").read_text()) == sum(mask.stat().st_size for mask in masks)
    return masks
