"""Quantities as people read them: seconds, shares, sizes and volumes with units and sensible digits.

The meter uses these functions, too, so this module imports next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

MISSING = "n/a"
CM3_PER_MM3 = 1e-3
BINARY_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
RATES = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))


def seconds(value: float | None) -> str:
    """A time with three significant digits.

    >>> [seconds(value) for value in (0, -1e-9, 0.0123, 1.234, 31.25, 312.4, 5312.4, None)]
    ['0 s', '0.000 s', '0.012 s', '1.23 s', '31.2 s', '312 s', '5,312 s', 'n/a']
    """
    if not value:
        return MISSING if value is None else "0 s"
    return f"{value:z,.3f} s" if abs(value) < 0.0995 else f"{three_digits(value)} s"


def clock(value: float | None) -> str:
    """A long time in hours, minutes and seconds; empty below two minutes, where seconds read better.

    >>> clock(5312.4), clock(12.0)
    ('1 h 28 min 32 s', '')
    """
    if value is None or value < 120:
        return ""
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text with aligned columns.

    >>> aligned([["tier", "room"], ["local", "2 GiB"]])
    ['tier   room', 'local  2 GiB']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def percent(share: float | None) -> str:
    """A share of 1 in per cent; one decimal where whole numbers would read 0 or 100.

    >>> [percent(share) for share in (0.931, 0.004, 0.9964, 0.0, 1.0, -1e-9, None)]
    ['93 %', '0.4 %', '99.6 %', '0 %', '100 %', '0 %', 'n/a']
    """
    if share is None:
        return MISSING
    hundredths = 100 * share
    digits = 1 if 0.05 <= abs(hundredths) < 1 or 99 < hundredths < 99.95 else 0  # near an end
    return f"{hundredths:z.{digits}f} %"  # z: no minus before a zero


def share_of(part: float | None, whole: float) -> float | None:
    """``part / whole``; ``None`` if the part is not known or the whole is 0."""
    return part / whole if part is not None and whole > 0 else None


def size(value: float | None) -> str:
    """Bytes in binary units, with two decimals at most.

    >>> [size(value) for value in (1, 17, 1536, 123_456_789, 3 << 30, None)]
    ['1 byte', '17 bytes', '1.5 KiB', '117.74 MiB', '3 GiB', 'n/a']
    """
    if value is None:
        return MISSING
    power = min((max(int(value), 1).bit_length() - 1) // 10, len(BINARY_UNITS) - 1)
    amount = f"{int(value) / 1024**power:.2f}".rstrip("0").rstrip(".")
    return "1 byte" if amount == "1" and power == 0 else f"{amount} {BINARY_UNITS[power]}"


def rate(value: float | None) -> str:
    """A bandwidth in bytes/s, with three significant digits in decimal units, as vendors and ``dd`` give it.

    >>> [rate(value) for value in (5304.3e6, 240.4e6, 19.9e6, 1.2e3, None)]
    ['5.30 GB/s', '240 MB/s', '19.9 MB/s', '1.20 kB/s', 'n/a']
    """
    if value is None:
        return MISSING
    unit, scale = next(((name, scale) for name, scale in RATES if value >= 0.9995 * scale), RATES[-1])
    return f"{three_digits(value / scale)} {unit}"


def cm3(volume_mm3: float | None) -> str:
    """A volume given in mm3, in cm3.

    >>> cm3(1243210.0)
    '1,243 cm³'
    """
    return MISSING if volume_mm3 is None else f"{volume_mm3 * CM3_PER_MM3:,.0f} cm³"


def number(value: float | None, digits: int = 0) -> str:
    """A bare number with thousands separators, for table columns and counts.

    >>> number(1233), number(2.46, 1), number(-0.01, 1)
    ('1,233', '2.5', '0.0')
    """
    return MISSING if value is None else f"{value:z,.{digits}f}"


def three_digits(value: float | None) -> str:
    """A bare number, such as a mean of counts, with three significant digits, and two decimals at most.

    >>> [three_digits(value) for value in (0.2512, 1.559, 14.2, 239.6, 2171.4, None)]
    ['0.25', '1.56', '14.2', '240', '2,171', 'n/a']
    """
    known = abs(value or 0.0)
    return number(value, 0 if known >= 99.95 else 1 if known >= 9.995 else 2)


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "participant"), counted(1233, "image"), counted(2, "process")
    ('1 participant', '1,233 images', '2 processes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


def first_of(names: Sequence[str], shown: int = 3) -> str:
    """Names in one line; of many, only the first few.

    >>> first_of(["a", "b"]), first_of(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def utc(time_s: float | None) -> str:
    """A time of day in UTC, from s since 1970-01-01.

    >>> utc(1795236000.0)
    '2026-11-21 04:40:00 UTC'
    """
    return MISSING if time_s is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_s))


def shorten(text: str, length: int) -> str:
    """A text with its middle cut out, because names differ at their ends.

    >>> shorten("a-very-long-site-name/sub-0025427", 20)
    'a-very-lo…ub-0025427'
    """
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"


def about(time_s: float) -> str:
    """A predicted time, rounded to the precision that a prediction has.

    >>> about(41.3), about(559.0), about(7230.0), about(0.42), about(4e6)
    ('41 s', '9 min', '2.0 h', '0.42 s', '1,111.1 h')
    """
    if time_s >= 5400:
        return f"{time_s / 3600:,.1f} h"
    if time_s >= 180:
        return f"{time_s / 60:.0f} min"
    return f"{number(time_s)} s" if time_s >= 9.95 else seconds(time_s)
