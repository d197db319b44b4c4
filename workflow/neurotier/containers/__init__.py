"""Containers: images obtained once and placed on a tier, and tools run in them that see only their own data.

``engine`` finds Apptainer (or Singularity) and explains its failures; ``reference`` reads how the configuration names
an image; ``build`` makes one from a definition file; ``store`` obtains and places it, ``verify`` checks its digest;
``run`` runs a command in it, and ends the container if the job dies.
"""
