"""Check every voxel of what a run of the incrementation wrote."""

from dataclasses import asdict

from neurotier.bigbrain.checking import check_task, checksum_of
from neurotier.bigbrain.tasks import Task
from neurotier.run.scripting import script

with script(snakemake) as context:
    checked = check_task(Task.load(context.input("plan")))
    context.write_json("checked", {"sha256": checksum_of(checked), "blocks": [asdict(one) for one in checked]})
