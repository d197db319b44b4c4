"""Draw the figures of the probe."""

from neurotier.run.scripting import Context, run_script
from neurotier.storage.probe import stages


def main(context: Context) -> None:
    stages.draw_probe(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
