"""Check every voxel of what a run of the incrementation wrote."""

from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.run_folder import write_checked
from neurotier.bigbrain.tasks import Task
from neurotier.run.scripting import script

with script(snakemake) as context:
    write_checked(check_task(Task.load(context.input("plan"))), context.output("checked"))
