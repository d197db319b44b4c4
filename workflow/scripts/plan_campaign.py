"""Plan the campaign: its runs in the order drawn, what they need on which tier, and that all of it can be done."""

from neurotier.campaign import stages
from neurotier.scripting import Context, run_script


def main(context: Context) -> None:
    stages.plan_campaign(context.snakemake.params.configuration, context.settings, context.places, context.say)


if __name__ == "__main__":
    run_script(snakemake, main)
