"""What all scripts of rules have in common: settings, log, and errors in one line."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.core.errors import NeurotierError
from neurotier.core.files import Facts, Record, read_json, read_json_or_empty, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import current_run, freeze_garbage_collector
from neurotier.core.settings import Settings
from neurotier.core.tables import Rows, read_table, write_table
from neurotier.core.tiers import is_per_node
from neurotier.dataset.commands import datalad_errors
from neurotier.meter.measure import Interrupted
from neurotier.run import jobs
from neurotier.run.jobs import EXTERNAL, load_settings, note_failure, own_error, run_facts
from neurotier.run.journal import Step, add_entry
from neurotier.run.stops import ending_with, raising_interrupted, runner


class Context(NamedTuple):
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

    def output(self, name: str) -> Path:
        """The output file of that name."""
        return Path(self.snakemake.output[name])

    def read_table(self, name: str, table: str) -> Rows:
        """The rows of an input that is a table of that schema."""
        return read_table(self.input(name), table)

    def write_table(self, name: str, table: str, rows: Iterable[Facts]) -> None:
        """Write rows to an output that is a table of that schema."""
        write_table(self.output(name), table, rows)

    def read_json(self, name: str) -> Any:
        """The content of an input."""
        return read_json(self.input(name))

    def write_json(self, name: str, data: Any) -> None:
        """Write an output."""
        write_json(self.output(name), data)

    @property
    def params(self) -> Any:
        """The rule's ``params``."""
        return self.snakemake.params

    @property
    def log(self) -> Path:
        """The log of the rule."""
        return Path(self.snakemake.log[0])

    @property
    def site(self) -> str:
        """The site that the job is for; empty for a dataset without sites."""
        return str(self.snakemake.wildcards.site_folder).rstrip("/")

    @property
    def places_images(self) -> bool:
        """Whether container images are placed here: if each node of a cluster has its own, jobs place them."""
        return not (self.run_facts.get("elsewhere") and is_per_node(self.settings, self.settings.placement["images"]))

    @property
    def run_facts(self) -> Record:
        """What this run of the workflow noted about itself."""
        return run_facts(self.places)

    def say(self, line: str) -> None:
        """Tell the user on the terminal, in the log, and in ``neurotier watch``."""
        say(line)
        self.step.note(line)


def say(line: str) -> None:
    """Tell the user on the terminal and in the log."""
    jobs.say(line, sys.stdout)
    jobs.say(line, sys.__stderr__)


@contextmanager
def script(snakemake: Any) -> Iterator[Context]:
    """Run a script's work with all its output in the rule's log; an error becomes one line on the terminal.

    At a signal to end, or when the Snakemake that started it is gone, the script ends with all its processes.
    """
    freeze_garbage_collector()
    log, results, rule = Path(snakemake.log[0]), Path(snakemake.params.results), snakemake.rule
    try:
        write_text(log, "", durable=False)  # from here on all output is appended, that of tools, too
        with raising_interrupted(), log.open("a") as file, redirect_stdout(file), redirect_stderr(file):
            settings = load_settings(results)
            places = Places.from_settings(settings)
            own = str(log.with_suffix("")).rpartition(f"/{rule}/")[2]  # distinguishes the jobs of a rule
            step = Step(places, rule if own == rule else f"{rule} {own}", say)
            with datalad_errors(), ending_with(runner(read_json_or_empty(places.runs / f"{current_run()}.json"))), step:
                yield Context(snakemake, settings, places, step)
    except (Exception, Interrupted) as error:
        with suppress(OSError):
            note_failure(log, error)
        if not isinstance(error, Interrupted):  # the end of the run reports a stop
            where = "" if isinstance(error, NeurotierError) else f"rule {rule}: "
            is_known = isinstance(error, EXTERNAL)
            line = f"neurotier: {where}{own_error(error)}" + ("" if is_known else f"; see {log}")
            print(line, file=sys.stderr)
            with suppress(NeurotierError, OSError):  # the results may not be readable
                places, host = Places.from_settings(load_settings(results)), socket.gethostname()
                facts = run_facts(places)
                if facts.get("elsewhere") and facts["host"] != host:  # the head prints it at the end of the run
                    add_entry(places, "failed", line=f"{line} (on {host})")
        sys.exit(own_error(error).exit_code)
