"""The analysis of participants: from the dataset tier through the work tier to the results tier.

``participant`` is the job and ``staging`` copies between tiers; ``brains`` runs a tool (``tools``, in a container
``in_container``) on ``images`` and writes ``derivatives``; ``app`` runs a BIDS App, and ``group_level`` its last step.
"""
