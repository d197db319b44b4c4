"""A plugin of pytest that prints what tests cost: CPU seconds, which other tests beside them do not change.

Counted is what a test, its fixtures and all processes that were waited for have taken. Servers that a session shares
are not, and what is made once counts for the test that came first.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import psutil
import pytest

SHOWN = 40
FROM = 100
"""How many tests it takes for the tables to be printed."""

KEY = "cpu_s"

spent_s: dict[str, float] = {}
"""CPU time of tests that have ended, by name, s."""

begun_s: dict[str, float] = {}


def cpu_s() -> float:
    """CPU time of this process, of its children, and of all that these have waited for, s."""
    used = 0.0
    for process in [psutil.Process(), *psutil.Process().children()]:
        with suppress(psutil.Error):
            used += sum(process.cpu_times()[:4])
    return used


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    begun_s[item.nodeid] = cpu_s()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "teardown" and item.nodeid in begun_s:
        item.user_properties.append((KEY, cpu_s() - begun_s.pop(item.nodeid)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Hear of a test that has ended, in the process that prints, too, to which workers send it."""
    if report.when == "teardown":
        spent_s[report.nodeid.split("@")[0]] = sum(
            float(str(value)) for key, value in report.user_properties if key == KEY
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if len(spent_s) < FROM:
        return
    files: Counter[str] = Counter()
    for name, value_s in spent_s.items():
        files[name.split("::")[0]] += value_s  # type: ignore[assignment]  # a Counter of seconds
    terminalreporter.section(f"CPU seconds: {sum(spent_s.values()):,.0f} in all")
    for table in (files, Counter(spent_s)):
        for name, value_s in table.most_common(SHOWN):
            terminalreporter.write_line(f"{value_s:8.1f}  {name}")
        terminalreporter.write_line("")
