"""Index the dataset's images (for an app: its files), filtered: ``index/images.tsv``, ``index/skipped.tsv``.

A third file holds a checksum and the selection: nothing else shows that a table was cut off at the end of a line, or
that the selection has changed since the results folder was moved.
"""

from neurotier.core.files import write_text
from neurotier.core.quantities import counted
from neurotier.dataset.index import index_dataset, kind_of_file
from neurotier.run.healing import whole_records
from neurotier.run.jobs import ensure_dataset
from neurotier.run.participants import checksum_of, selected_in
from neurotier.run.plan import Plan
from neurotier.run.scripting import script

with script(snakemake) as context:
    suffixes = context.settings.app.suffixes if context.settings.app.image else None
    dataset = ensure_dataset(context.settings, context.places, context.say)
    index = index_dataset(dataset, context.settings.dataset, suffixes, context.step.tell)
    skipped = [{"item": item, "reason": reason} for item, reason in index.skipped.items()]
    context.write_table("skipped", "skipped", skipped)
    context.write_table("images", "images", index.rows())
    facts = context.run_facts
    plan = Plan(context.settings, context.places, on_cluster=bool(facts.get("elsewhere")))
    write_text(context.output("checksum"), checksum_of(context.output("images").read_bytes()) + plan.selection)
    plan.find_remaining(whole_records(context.places, plan.is_app), facts["forced"], facts["parallelism"])
    people = counted(len(selected_in(context.places)), "participant")
    found = counted(len(index.images), kind_of_file(suffixes))
    context.say(f"{found} of {people}; {len(index.skipped)} skipped")
    for item, reason in index.skipped.items():
        context.say(f"skipped {item}: {reason}")
