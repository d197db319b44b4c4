"""Increment all blocks with GNU parallel."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.increment_with_gnu_parallel(context.settings, context.places, context.snakemake.wildcards.run)


if __name__ == "__main__":
    run_script(snakemake, main)
