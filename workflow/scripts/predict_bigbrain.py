"""Predict the makespans of the incrementation."""

from neurotier.bigbrain.plan import BigBrainPlan, read_manifest
from neurotier.bigbrain.predictions import predict
from neurotier.run.scripting import script

with script(snakemake) as context:
    tiers = BigBrainPlan(context.settings, context.places).tiers
    blocks = dict(zip(tiers, map(read_manifest, context.inputs("blocks")), strict=True))
    probes = dict(zip(tiers, context.inputs("probes"), strict=False))  # none without predictions
    calibrations = [checked.parent for checked in context.inputs("calibrations")]
    rows = predict(context.settings.bigbrain, blocks, probes, calibrations)
    context.write_table("predictions", "bigbrain_predictions", rows)
