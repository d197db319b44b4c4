"""Run every run of the campaign that is not there yet, in the order drawn."""

from neurotier.campaign import stages
from neurotier.scripting import Context, run_script


def main(context: Context) -> None:
    stages.run_campaign(context.snakemake.params.configuration, context.settings, context.places, context.say)


if __name__ == "__main__":
    run_script(snakemake, main)
