"""Containers: images obtained once and placed on a tier, and tools run in them with nothing in sight but their own.

``engine`` finds Apptainer (or Singularity) and puts its failures into words; ``reference`` says what an image is
called; ``build`` makes one of a definition file; ``store`` obtains and places it; ``run`` runs a command in it.
"""
