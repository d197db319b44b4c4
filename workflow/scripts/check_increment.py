"""Check every voxel of what a run of the incrementation wrote."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.check(context.places, context.snakemake.wildcards.run, print)


if __name__ == "__main__":
    run_script(snakemake, main)
