"""The analysis of participants: from the dataset tier through the work tier to the results tier.

``participant`` is the job and ``staging`` copies between tiers; ``brains`` runs a tool (``tools``), on the host or in a
container, on ``images`` and writes ``derivatives``; ``app`` runs a BIDS App, and its group level.
"""
