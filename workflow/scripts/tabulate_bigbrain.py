"""Tabulate the runs of the incrementation, predict their makespans, and free the room that they took on the tiers."""

from neurotier.bigbrain.plan import BigBrainPlan, read_manifest
from neurotier.bigbrain.predictions import predict
from neurotier.bigbrain.room import make_room
from neurotier.bigbrain.tabulation import lines_of, tabulate, write_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan = BigBrainPlan(context.settings, context.places)
    tabulated = tabulate(checked.parent for checked in context.inputs("checked"))
    write_tables(tabulated, context.output("runs").parent)
    blocks = dict(zip(plan.tiers, map(read_manifest, context.inputs("blocks")), strict=True))
    probes = dict(zip(plan.tiers, context.inputs("probes"), strict=False))  # none without predictions
    calibrations = [checked.parent for checked in context.inputs("calibrations")]
    rows = predict(context.settings.bigbrain, blocks, probes, calibrations)
    context.write_table("predictions", "bigbrain_predictions", rows)
    make_room(plan)
    for line in lines_of(tabulated["runs"]):
        context.say(line)
