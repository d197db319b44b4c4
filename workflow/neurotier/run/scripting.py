"""What every script of a rule does around its own work: settings, log, and errors in one line."""

from __future__ import annotations

import contextlib
import socket
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from neurotier.core.errors import NeurotierError, without_credentials
from neurotier.core.files import clear_log, read_json, write_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run, spare_collections
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table, write_table
from neurotier.dataset.commands import naming_commands
from neurotier.meter.measure import Interrupted
from neurotier.run.jobs import load_settings, note, run_facts
from neurotier.run.journal import Step, tell
from neurotier.run.stops import ending_with, runner, unwinding


@dataclass(frozen=True)
class Context:
    """What a script works with."""

    snakemake: Any
    settings: Settings
    places: Places
    step: Step

    def input(self, name: str) -> Path:
        """The input file of that name."""
        return Path(self.snakemake.input[name])

    def inputs(self, name: str) -> list[Path]:
        """The input files of that name."""
        return [Path(file) for file in self.snakemake.input.get(name, [])]

    def inputs_named(self, start: str) -> dict[str, Path]:
        """The input files whose names begin so, by name."""
        return {name: Path(file) for name, file in self.snakemake.input.items() if name.startswith(start)}

    def output(self, name: str) -> Path:
        """The output file of that name."""
        return Path(self.snakemake.output[name])

    def read_table(self, name: str, table: str) -> list[Row]:
        """The rows of an input, which is a table of that schema."""
        return read_table(self.input(name), table)

    def write_table(self, name: str, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows to an output, which is a table of that schema."""
        write_table(self.output(name), table, rows)

    def read_json(self, name: str) -> Any:
        """What an input says."""
        return read_json(self.input(name))

    def write_json(self, name: str, data: Any) -> None:
        """Write an output."""
        write_json(self.output(name), data)

    @property
    def params(self) -> Any:
        """What the rule's ``params`` say."""
        return self.snakemake.params

    @property
    def log(self) -> Path:
        """The log of the rule."""
        return Path(self.snakemake.log[0])

    @property
    def site(self) -> str:
        """The site that the rule is about; empty for a dataset without sites."""
        return str(self.snakemake.wildcards.site_folder).rstrip("/")

    @property
    def run_facts(self) -> dict[str, Any]:
        """What this run of the workflow has noted of itself."""
        return run_facts(self.places)

    def say(self, line: str) -> None:
        """Tell the user on the terminal, the log, and who watches."""
        say(line)
        self.step.note(line)


def say(line: str) -> None:
    """Tell the user on the terminal, and the log."""
    print(line, flush=True)
    print(line, file=sys.__stderr__, flush=True)


@contextlib.contextmanager
def script(snakemake: Any) -> Iterator[Context]:
    """Do a script's work with everything it prints in the rule's log; an error is one line on the terminal.

    It ends, with all that it has started, when it is told to, and when the Snakemake that wants it is gone.
    """
    spare_collections()
    log, results = Path(snakemake.log[0]), Path(snakemake.params.results)
    try:
        clear_log(log)
        log.write_text("")  # then everybody appends, tools too
        with unwinding(), log.open("a") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            try:
                settings = load_settings(results)
                places = Places.from_settings(settings)
                facts = places.runs / f"{current_run()}.json"
                own = str(log.with_suffix("")).rpartition(f"/{snakemake.rule}/")[2]  # which of the rule's jobs it is
                step = Step(places, snakemake.rule if own == snakemake.rule else f"{snakemake.rule} {own}", say)
                with naming_commands(), ending_with(runner(facts)), step:
                    yield Context(snakemake, settings, places, step)
            except NeurotierError as error:
                print(f"neurotier: {without_credentials(str(error))}", file=sys.stderr)
                raise
            except Exception:
                print(without_credentials(traceback.format_exc()), end="", file=sys.stderr)
                raise
    except NeurotierError as error:
        stop(str(error), error.exit_code, results)
    except Interrupted as interrupted:
        with contextlib.suppress(OSError):  # the end of the run tells the user
            note(log, str(interrupted))
        sys.exit(128 + interrupted.signal_number)
    except OSError as error:
        stop(f"rule {snakemake.rule}: {error.filename or log}: {error.strerror}", 74, results)
    except Exception:
        stop(f"fault in rule {snakemake.rule}; see {log}", 70, results)


def stop(line: str, exit_code: int, results: Path) -> NoReturn:
    """End the script with one line on the terminal; from a cluster, the end of the run passes it on."""
    print(f"neurotier: {line}", file=sys.stderr, flush=True)
    with contextlib.suppress(NeurotierError, OSError):  # it may be that the results cannot be read
        places, host = Places.from_settings(load_settings(results)), socket.gethostname()
        facts = run_facts(places)
        if facts.get("elsewhere") and facts["host"] != host:
            tell(places, "failed", line=f"neurotier: {line} (on {host})")
    sys.exit(exit_code)
