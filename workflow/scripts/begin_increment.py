"""Begin a run of the incrementation."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.begin(context.settings, context.places, context.snakemake.wildcards.run)


if __name__ == "__main__":
    run_script(snakemake, main)
