"""Draw the figures of the probe."""

from neurotier.probe import stages
from neurotier.scripting import Context, run_script


def main(context: Context) -> None:
    stages.draw_probe(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
