"""The probe: what one stream, and many streams, get from a tier."""
