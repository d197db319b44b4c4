"""Campaign: conditions run one after the other, in an order drawn by lot, so that tiers are compared honestly."""
