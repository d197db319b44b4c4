"""Engines that stage data; each runs in a process of its own (:mod:`neurotier.storage.staging.program`)."""
