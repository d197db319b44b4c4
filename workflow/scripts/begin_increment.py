"""Begin a run of the incrementation: its plan says what its workers must know."""

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.run_folder import begin
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    plan = BigBrainPlan(context.settings, context.places)
    begin(plan, context.snakemake.wildcards.run, context.output("plan"))


if __name__ == "__main__":
    run_script(snakemake, main)
