"""Write the page of the advice: ``advice.html``."""

from neurotier.advice import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.write_advice(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
