"""Fail unless every selected participant has a record; the marker ``state/complete.json`` says how many there are.

The marker also names the run: if its content were the same as before, Snakemake would not make the tables again.
"""

from neurotier.core.processes import current_run
from neurotier.run.participants import require_all, selected_in
from neurotier.run.scripting import script

with script(snakemake) as context:
    count = require_all(context.places, selected_in(context.places))
    context.write_json("complete", {"participants": count, "run": current_run()})
