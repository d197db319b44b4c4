"""Analyse participants of the calibration again, to learn what it does not show: ``advice/rehearsal.json``."""

from neurotier.advice.situation import Situation
from neurotier.run.scripting import script

with script(snakemake) as context:
    situation = Situation(context.settings, context.places)
    chosen = context.read_json("calibration")["participants"]
    log = context.log.with_name("job.log")
    context.write_json("rehearsal", situation.rehearse(chosen, log))
