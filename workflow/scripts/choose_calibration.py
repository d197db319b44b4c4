"""Choose the participants of the calibration, who are analysed first: ``advice/calibration.json``."""

from neurotier.advice.situation import Situation, choose_first
from neurotier.core.quantities import size
from neurotier.run.scripting import script

with script(snakemake) as context:
    situation = Situation(context.settings, context.places, context.inputs("checks"))
    chosen = choose_first(situation)
    if chosen:
        context.say("Calibration: " + ", ".join(f"{name} ({size(situation.sizes[name])})" for name in chosen))
    context.write_json("calibration", {"participants": chosen})
