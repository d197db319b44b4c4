"""Do all runs of the incrementation on this node of a cluster, and take over their tables."""

from neurotier.run.bigbrain_job import run_here, take_over
from neurotier.run.scripting import script

with script(snakemake) as context:
    log = context.log.with_name("snakemake.log")
    inner = run_here(context.params.asked, context.settings, context.places, log)
    take_over(inner, [context.output(name) for name in ("phases", "runs", "spark", "predictions")])
