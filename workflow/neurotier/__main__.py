"""The ``neurotier`` command: commands for users, the meter for any command, and the jobs of the workflow.

Modules are imported only once the command is known, so that the meter does not pay for what the workflow needs.
"""

from __future__ import annotations

import gc
import os
import sys

from neurotier import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

FOR_USERS = ("watch", "open", "init", "jobs", "images", "site", "describe", "remake")
"""Commands for users, besides ``meter``; all others are jobs."""

TARGETS = """targets, for everyone (snakemake TARGET --cores N):
  all           derivatives, tables, figures, report.html (default)
  participants  derivatives alone, without tables and report
  ready         what participants need: clone, index, images, tool
  check         are the tiers there, writable, shared?
  advise        the predicted makespan on every tier
  comparison    placements side by side; the default target of a campaign

targets for storage studies:
  probe         what your tiers can do, measured with fio
  sweep         a grid of block sizes, processes, patterns and queue depths
  daq           how many writers at a fixed rate a tier sustains
  ior           a file per process, on one node or several
  staging       writers hand data to readers through Ray or ADIOS2
  bigbrain      block incrementation with Snakemake, GNU parallel, Spark
  published     the 2020 paper's figures from its raw logs
"""

CANNOT_READ = 73
"""Exit code of :class:`neurotier.core.errors.TierError`, repeated here since its module may be what cannot be read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["meter"]:
        gc.set_threshold(100_000)  # otherwise garbage is collected ten times before the command starts
        from neurotier.meter import command

        code = command.main(words[1:])
        if arguments is None:
            os._exit(code)  # the interpreter would take 3 ms to clean up, a tenth of what the meter takes
        return code
    try:
        return run_job(parser().parse_args(words or ["--help"]))
    except KeyboardInterrupt:  # while modules are being imported
        return 130
    except OSError as error:  # a module or the results folder itself cannot be read
        print(
            f"neurotier: {error.filename or 'the output, or a file of the results'}: {error.strerror}", file=sys.stderr
        )
        return CANNOT_READ
    except ImportError as error:
        print(f"neurotier: {sys.prefix}: {error}; install this Python environment again", file=sys.stderr)
        return CANNOT_READ


def run_job(options: argparse.Namespace) -> int:
    """Run a job of the workflow; returns the exit code of the process."""
    gc.disable()  # nothing imported is garbage; looking for it takes a twentieth of a short job's CPU time
    from neurotier.core.errors import NeurotierError
    from neurotier.core.processes import freeze_garbage_collector, use_threads
    from neurotier.meter.measure import Interrupted
    from neurotier.run.stops import raising_interrupted

    freeze_garbage_collector()
    gc.enable()
    use_threads(1)
    try:
        with raising_interrupted():
            if options.command in FOR_USERS:
                return answer(options)
            from neurotier.run import pool
            from neurotier.run.needs import Granted

            request = pool.Request(
                stage={"fetch-images": pool.FETCH, "drop-images": pool.DROP}.get(options.command, pool.ANALYSE),
                share=options.share,
                only=options.only,
                marker=options.marker,
                analysis=options.analysis,
                attempt=options.attempt,
            )
            granted = Granted(options.threads, options.mem_mb, options.work_mb, options.work_files)
            return pool.run_pool(options.results, request, granted, options.log)
    except Interrupted as interrupted:
        return interrupted.exit_code
    except NeurotierError as error:
        print(f"neurotier: {error}", file=sys.stderr)
        return error.exit_code


def answer(options: argparse.Namespace) -> int:
    """Run a command for users; returns the exit code of the process."""
    from neurotier.run import commands

    match options.command:
        case "watch":
            from neurotier.watch.command import watch

            return watch(options.results, options.every, options.once)
        case "remake":
            from neurotier.dataset.commands import datalad_errors
            from neurotier.provenance.remake import remake

            with datalad_errors():
                return remake(options.how, options.inputs, options.work)
        case "open":
            return commands.open_page(options.results, options.page)
        case "init":
            print("\n".join(commands.set_up_folder(options.folder)))
            return 0
        case "site":
            from neurotier.run.site import draft

            print(draft(), end="")
            return 0
        case "describe":
            return commands.show_description(options.record, options.phase, options.output)
        case "images":
            return commands.show_images(options.results, options.remove_unused)
    return commands.show_cluster_jobs(options.results, options.cancel)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    import argparse

    of_run = argparse.ArgumentParser(add_help=False)
    of_run.add_argument("results", type=absolute, nargs="?", default="results", help="results folder of a run")
    job = argparse.ArgumentParser(add_help=False)
    job.add_argument("--results", type=absolute, required=True, help="results folder of the run")
    job.add_argument("--log", type=absolute, required=True, help="file that takes what is printed")
    job.add_argument("--share", default="", help="share of the participants, K-of-N")
    job.add_argument("--marker", type=absolute, help="file to write when done")
    job.add_argument(
        "--only", nargs="+", default=(), metavar="PARTICIPANT", help="[SITE/]sub-LABEL, in place of a share"
    )
    job.add_argument("--analysis", default="", help="key of tool and options, by which records are known")
    job.add_argument("--attempt", type=int, default=1, help="number of the attempt")
    for name, text in (
        ("threads", "cores of the job"),
        ("mem-mb", "memory of the job, MB"),
        ("work-mb", "room of the job on the work tier, MB"),
        ("work-files", "files of the job on the work tier"),
    ):
        job.add_argument(f"--{name}", type=int, help=text)

    main_parser = argparse.ArgumentParser(
        prog="neurotier", description=TARGETS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    main_parser.add_argument("--version", action="version", version=f"neurotier {__version__}")
    commands = main_parser.add_subparsers(dest="command", required=True, title="commands", metavar="COMMAND")

    def command(name: str, text: str, *shared: argparse.ArgumentParser) -> argparse.ArgumentParser:
        if name not in (*FOR_USERS, "meter"):  # a job: the help does not list it
            return commands.add_parser(name, description=text, parents=shared)
        return commands.add_parser(name, help=text, description=text, parents=shared)

    command("meter", "measure any command and its whole process tree")
    watching = command("watch", "follow a run: done, running, failed, time left, room on its tiers", of_run)
    watching.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="pause between looks (default 1)")
    watching.add_argument("--once", action="store_true", help="look once")
    opening = command("open", "show the page of a results folder that was written last", of_run)
    opening.add_argument("page", nargs="?", default="", help="which page, such as report or comparison")
    laying = command("init", "lay out a folder to work in: workflow, configuration, profiles")
    laying.add_argument("folder", type=absolute, help="a new folder, or one laid out earlier")
    listing = command("jobs", "list the cluster jobs of a run that has not ended, or that died", of_run)
    listing.add_argument("--cancel", action="store_true", help="end them, if their run is dead")
    command("site", "draft a profile for this cluster, from what its Slurm says")
    describing = command("describe", "describe a measured run as YAML, to be rehearsed")
    describing.add_argument(
        "record", type=absolute, help="record of a participant, or lines of neurotier meter --record"
    )
    describing.add_argument("--output", type=absolute, metavar="FILE", help="write it there, and not on the terminal")
    describing.add_argument("--phase", help="phase of a record (default: compute), or of lines (default: the last)")
    images = command("images", "list the container images in the store of a results folder's tier", of_run)
    images.add_argument("--remove-unused", type=float, metavar="DAYS", help="remove those not used for this many days")
    again = command("remake", "make derivatives again, in a clone of their dataset; datalad rerun runs this")
    again.add_argument("how", type=absolute, help="file below code/neurotier that says how they were made")
    again.add_argument(
        "inputs",
        type=absolute,
        nargs="*",
        help="raw images, for an app folders, in sourcedata/raw; of a group level none",
    )
    again.add_argument("--work", type=absolute, help="folder for intermediates (default: that of temporary files)")
    command("analyze-participants", "fetch, analyse and drop the images of a share's participants", job)
    command("fetch-images", "fetch the images of a share's participants to the dataset tier", job)
    command("drop-images", "drop the images of a share's participants from the dataset tier", job)
    return main_parser


def absolute(path: str) -> Path:
    """A path that stays valid after a phase has changed the working folder."""
    from pathlib import Path

    return Path(path).absolute()


if __name__ == "__main__":
    sys.exit(main())
