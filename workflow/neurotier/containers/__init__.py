"""Containers: images obtained once and placed on a tier, and tools run in them that see only their own data.

``reference`` reads how the configuration names an image, and fetches those of DataLad datasets; ``engine`` finds
Apptainer (or Singularity) and explains its failures, ``build`` has it make images; ``store`` obtains and places them,
on a ``shelf`` that compares them with their digest; ``run`` runs a command in one, and ends the container if the job
dies.
"""
