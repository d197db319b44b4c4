"""Make the blocks of the incrementation on one tier."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.make(context.settings, context.places, context.snakemake.wildcards.tier, context.say)


if __name__ == "__main__":
    run_script(snakemake, main)
