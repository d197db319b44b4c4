"""The probe: what each tier can do, measured with fio: one stream, many streams, small requests, metadata."""
