"""Member ``paper`` of the model: Eq. (1) of Hayot-Sasson, Brown and Glatard (2020), M >= D / R + D / W."""

from __future__ import annotations


def least_makespan_s(read: float, written: float, read_per_s: float, write_per_s: float) -> float:
    """The makespan below which one stream at a time cannot read and write so much, s; bytes, or any unit of size.

    Examples
    --------
    125 blocks of 40 um on the local SSD:

    >>> size = 125 * 643_625_668
    >>> round(least_makespan_s(size, size, 518.6e6, 240.4e6), 1)
    489.8
    """
    return read / read_per_s + written / write_per_s
