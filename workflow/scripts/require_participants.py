"""Fail unless everyone whom the index selects has a record; the marker ``state/complete.json`` says how many."""

from neurotier.run.participants import require_all, selected_in
from neurotier.run.scripting import script

with script(snakemake) as context:
    context.write_json("complete", {"participants": require_all(context.places, selected_in(context.places))})
