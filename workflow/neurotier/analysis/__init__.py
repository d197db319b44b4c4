"""The analysis of participants: from the dataset tier over the work tier to the results tier.

``participant`` is the job, ``staging`` copies between tiers and ``work`` keeps its folder; ``brains`` runs a tool
(``tools``, in a container ``in_container``) on ``images`` and writes ``derivatives``; ``app`` runs a BIDS App, and
``group_level`` its last step.
"""
