"""Fail unless everyone whom the index selects has a record; the marker ``state/complete.json`` says how many.

And by which run: of a marker with the content that it had, Snakemake would not make tables anew.
"""

from neurotier.core.processes import current_run
from neurotier.run.participants import require_all, selected_in
from neurotier.run.scripting import script

with script(snakemake) as context:
    count = require_all(context.places, selected_in(context.places))
    context.write_json("complete", {"participants": count, "run": current_run()})
