"""Examine the folders that apps read, and place them on the images tier, once: ``index/caches.json``.

Where the nodes of a cluster have images tiers of their own, the first job on each node places them there.
"""

from neurotier.analysis.steps import write_step
from neurotier.meter.function import measure_function
from neurotier.run.images import obtain_caches
from neurotier.run.scripting import script

with script(snakemake) as context:
    settings, places = context.settings, context.places
    caches, usage = measure_function(lambda: obtain_caches(settings, places, context.say, context.places_images))
    context.write_json("caches", caches)
    write_step(places, "place_caches", "", ", ".join(caches), [("obtain", usage)])
