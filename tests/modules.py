"""A Snakefile with two modules of this workflow, and what each is given."""

from __future__ import annotations

from pathlib import Path

import yaml
from support import plain_dataset, small_head, t1w

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
