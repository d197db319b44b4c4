"""Measure one tier with fio: ``probe/CLASS/TIER.tsv``."""

from neurotier.core.tiers import Tier
from neurotier.run.scripting import script
from neurotier.storage.probe.walk import probe_tier

with script(snakemake) as context:
    settings = context.settings
    tier = Tier.from_settings(settings.tiers[context.snakemake.wildcards.tier]).here()
    streams = context.params.asked["streams"]
    rows = probe_tier(tier, settings.probe, streams, context.places, context.say, context.step.tell)
    context.write_table("table", "probe", rows)
