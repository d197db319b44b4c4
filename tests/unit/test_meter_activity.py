"""How long some thread was active: what is booked for it may be another's, or of another time."""

from __future__ import annotations

import pytest
from neurotier.meter.activity import Activity, Books


@pytest.mark.parametrize(
    ("passed_s", "books", "bounds_s"),
    [
        (0.1, Books(0.05, 0.05, awake=False), (0.15, 0.15)),
        (0.5, Books(38_888.98, 0.15, awake=False), (0.15, 0.6)),
    ],
    ids=["another thread of the same number", "more than there was time for, as Linux 6.18 books some waits"],
)
def test_books_that_cannot_be_of_this_interval(passed_s: float, books: Books, bounds_s: tuple[float, float]) -> None:
    activity = Activity(waits_booked=True)
    activity.cores = 2
    activity.add(0.1, {7: Books(0.1, 0.1, awake=False)}, [], awake=False)
    activity.add(passed_s, {7: books}, [], awake=False)
    assert (activity.least_s, activity.most_s) == pytest.approx(bounds_s)
    assert activity.misbooked == (books.active_s > passed_s)
