"""Measure one tier with fio: ``probe/CLASS/TIER.tsv``."""

from neurotier.core.tables import write_table
from neurotier.core.tiers import Tier
from neurotier.run.scripting import Context, run_script
from neurotier.storage.probe.walk import probe_tier


def main(context: Context) -> None:
    settings = context.settings
    tier = Tier.from_settings(settings.tiers[context.snakemake.wildcards.tier]).here()
    streams = context.snakemake.params.asked["streams"]
    rows = probe_tier(tier, settings.probe, streams, context.places, context.say, context.step.tell)
    write_table(context.output("table"), "probe", rows)


if __name__ == "__main__":
    run_script(snakemake, main)
