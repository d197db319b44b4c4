"""Build, pull or take the container image, once, and place it on the images tier: ``index/image.json``.

Where the nodes of a cluster have images tiers of their own, the first job on each node places it there.
"""

from neurotier.analysis.steps import write_step
from neurotier.meter.function import measure_function
from neurotier.run.images import image_store
from neurotier.run.scripting import script

with script(snakemake) as context:
    settings, places = context.settings, context.places
    key = "app.image" if settings.app.image else f"tool.{settings.tool.name}.image"
    store = image_store(settings, places, context.log, context.say, context.places_images)
    image, usage = measure_function(lambda: store.obtain(settings.image or "", key, context.places_images))
    context.write_json("image", image._asdict())
    write_step(places, "obtain_image", "", image.name, [("obtain", usage)])
