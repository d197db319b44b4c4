"""The C library, for system calls that Python does not offer."""

from __future__ import annotations

import ctypes

LIBC = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
"""Options of ``prctl``."""
