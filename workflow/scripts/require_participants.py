"""Stop unless everyone whom the index selects has a record; the marker ``state/complete.json`` says how many."""

from neurotier.core.files import write_json
from neurotier.run.participants import require_all
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    write_json(context.output("complete"), {"participants": require_all(context.places)})


if __name__ == "__main__":
    run_script(snakemake, main)
