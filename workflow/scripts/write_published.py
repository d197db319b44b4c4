"""Write the page about the published experiment."""

from neurotier.published import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    context.say(stages.write_published(context.settings, context.places))


if __name__ == "__main__":
    run_script(snakemake, main)
