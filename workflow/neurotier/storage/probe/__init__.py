"""The probe: a tier as one stream and as many see it."""
