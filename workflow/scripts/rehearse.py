"""Analyse participants of the calibration once more, for what it does not show: ``advice/rehearsal.json``."""

from neurotier.advice.situation import Situation
from neurotier.core.files import read_json, write_json
from neurotier.run.scripting import script

with script(snakemake) as context:
    situation = Situation(context.settings, context.places)
    chosen = read_json(context.input("calibration"))["participants"]
    log = context.log.with_name("job.log")
    write_json(context.output("rehearsal"), situation.rehearse(chosen, context.params.parallelism, log))
