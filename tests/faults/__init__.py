"""The fault campaign: real runs on small data, a fault drawn at random, the same command again, then the invariants."""
