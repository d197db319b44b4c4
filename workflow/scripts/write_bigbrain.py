"""Write the report of the incrementation: ``bigbrain.html``."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    for line in stages.write_page(context.places):
        context.say(line)


if __name__ == "__main__":
    run_script(snakemake, main)
