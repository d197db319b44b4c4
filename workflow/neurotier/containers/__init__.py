"""Containers: images obtained once and placed on a tier, and tools run in them that see only their own data.

``reference`` reads how the configuration names an image, and builds, pulls or fetches it; ``engine`` finds Apptainer
(or Singularity) and explains its failures; ``store`` keeps and places images and caches, and verifies their digests;
``run`` runs a command in one, and ends the container if the job dies.
"""
