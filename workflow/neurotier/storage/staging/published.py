"""What the published experiment states of staging in numbers, with page and figure.

Only what its text states: the response times of its Figures 6 to 8 are in the pictures alone. Pages are those of the
report, counted from its title.
"""

from __future__ import annotations

from dataclasses import asdict

from neurotier.core.tables import Row
from neurotier.storage.sweep.published import OPTANE_REPORT
from neurotier.storage.workload.published import PublishedNumber

BEST_READERS, BEST_WRITERS, SERVERS, STEP_BYTES, CLIENT_BYTES = (
    *("best_readers", "best_writers", "servers", "step_bytes", "client_bytes"),
)
GB, MB = 1e9, 1e6
OTHERS = "The others were 64, the servers 4, and a step had 4 GB; the response times themselves are not in the text."


def stated(
    name: str, quantity: str, value: float, unit: str, page: str, figure: str, more: str = ""
) -> PublishedNumber:
    """A number of the report."""
    return PublishedNumber(name, quantity, value, unit, None, OPTANE_REPORT, page, figure, more)


NUMBERS = (
    stated("Data of a step, writers to readers", STEP_BYTES, 4 * GB, "bytes", "page 5", "Figure 6"),
    stated(
        *("Servers: the fewest", SERVERS, 1, "servers", "page 5", "Figure 6"),
        "More servers on one node lowered the response times of writes and reads; by how much is not in the text.",
    ),
    stated(
        "Servers: the most", SERVERS, 16, "servers", "page 5", "Figure 6", "Whether 16 were the most helpful is open."
    ),
    stated(
        "Readers beyond which reading takes longer, from", BEST_READERS, 8, "readers", "page 6", "Figure 7a", OTHERS
    ),
    stated("Readers beyond which reading takes longer, to", BEST_READERS, 16, "readers", "page 6", "Figure 7a", OTHERS),
    stated("Writers with the best balance", BEST_WRITERS, 16, "writers", "page 6", "Figure 7b", OTHERS),
    stated(
        *("Data of each writer and reader in weak scaling", CLIENT_BYTES, 8 * MB, "bytes", "page 6", "Figure 8"),
        "Response times grew with the number of writers and readers; by how much is not in the text.",
    ),
)


def rows() -> list[Row]:
    """Rows of ``published.tsv``."""
    return [{name: value for name, value in asdict(number).items() if name != "at"} for number in NUMBERS]


def values(quantity: str) -> list[int]:
    """The numbers that are stated of a quantity.

    >>> values(BEST_READERS)
    [8, 16]
    """
    return [int(number.value) for number in NUMBERS if number.quantity == quantity]
