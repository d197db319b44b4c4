"""Stop unless everyone whom the index selects has a record; the marker ``state/complete.json`` says how many."""

from neurotier.core.files import write_json
from neurotier.run.participants import require_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    write_json(context.output("complete"), {"participants": require_all(context.places)})
