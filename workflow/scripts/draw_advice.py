"""Draw the figure of the advice."""

from neurotier.advice import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.draw_advice(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
