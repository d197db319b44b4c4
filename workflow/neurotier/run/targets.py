"""The targets of the workflow, and what each makes: what ``neurotier`` alone prints, and the main README lists."""

from __future__ import annotations

from neurotier import __version__
from neurotier.core.quantities import aligned

TARGETS = {
    "all": "derivatives, tables, figures, report.html (default)",
    "participants": "derivatives alone, without tables and report",
    "ready": "everything that participants need: clone, index, images, tool",
    "check": "are the tiers there, writable, shared? From a node of a cluster",
    "advise": "advice.html: predicted makespan on every tier",
    "probe": "probe.html: what your tiers can do, measured with fio",
    "sweep": "sweep.html: a grid of block sizes, processes, patterns and queue depths",
    "daq": "daq.html: writers at a fixed rate, how many a tier holds",
    "ior": "ior.html: a file per process, written and read back by another",
    "staging": "staging.html: writers hand readers data through Ray or ADIOS2",
    "comparison": "comparison.html: which placement was fastest; the default of a campaign",
    "bigbrain": "bigbrain.html: block incrementation with Snakemake, GNU parallel, Spark",
    "published": "published.html: the 2020 paper's figures from its raw logs",
}

COMMANDS = {
    "watch RESULTS": "follow a run, from any node",
    "open RESULTS": "show the page that was written last",
    "meter COMMAND": "measure any command and its whole process tree",
    "describe RECORD": "write a description, to be rehearsed, of what was measured",
    "remake HOW INPUTS": "make derivatives again, in a clone of their dataset",
    "init FOLDER": "lay out a folder to work in",
    "site": "draft a profile for this cluster",
    "jobs RESULTS": "cluster jobs of a run that has not ended, or that died",
    "images RESULTS": "container images in the store",
}


def overview() -> list[str]:
    """What there is, in lines for a terminal."""
    return [
        f"neurotier {__version__}: a BIDS participant analysis on the storage tier you choose",
        "",
        "snakemake TARGET --workflow-profile profiles/local --cores 2   (targets before --config and --configfile,",
        "                                                                which take every word that follows)",
        *(f"  {text}" for text in aligned(list(TARGETS.items()))),
        "",
        "neurotier COMMAND",
        *(f"  {text}" for text in aligned(list(COMMANDS.items()))),
        "",
        "neurotier COMMAND --help says more of each.",
    ]
