"""The ``neurotier`` command: the meter for any command, and the jobs that the workflow runs, one by one.

Little is imported before it is known what is wanted: the meter must not cost what the workflow needs.
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

CANNOT_READ = 73
"""Exit code of :class:`neurotier.core.errors.TierError`, whose module may be what cannot be read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["meter"]:
        gc.set_threshold(100_000)  # or it looks for garbage ten times before the command starts
        from neurotier.meter import command

        code = command.main(words[1:])
        if arguments is None:
            sys.stderr.flush()
            os._exit(code)  # the interpreter would take 3 ms to clear itself away, a tenth of what the meter takes
        return code
    try:
        return run_job(parser().parse_args(words))
    except KeyboardInterrupt:  # while modules are imported
        return 130
    except OSError as error:  # a module or the results folder itself cannot be read
        print(f"neurotier: {error.filename or 'a file of the results'}: {error.strerror}", file=sys.stderr)
        return CANNOT_READ
    except ImportError as error:
        print(f"neurotier: {sys.prefix}: {error}; make this Python environment anew", file=sys.stderr)
        return CANNOT_READ


def run_job(options: argparse.Namespace) -> int:
    """Run a job of the workflow; the exit code of the process."""
    import gc

    gc.disable()  # nothing that is imported is garbage; to look for it takes a twentieth of a short job's CPU time
    from neurotier.core.errors import NeurotierError
    from neurotier.core.processes import use_one_blas_thread
    from neurotier.meter.measure import Interrupted
    from neurotier.run import jobs
    from neurotier.run.stops import unwinding

    gc.freeze()
    gc.enable()
    use_one_blas_thread()
    try:
        with unwinding():
            if options.command == "analyze-participant":
                return jobs.analyze_participant(options.results, options.participant, options.log)
            if options.command == "get-images":
                return jobs.get_participant_images(options.results, options.participant, options.marker, options.log)
            return jobs.drop_participant_images(options.results, options.participant, options.marker, options.log)
    except Interrupted as interrupted:
        return 128 + interrupted.signal_number
    except NeurotierError as error:
        print(f"neurotier: {error}", file=sys.stderr)
        return error.exit_code


def parser() -> argparse.ArgumentParser:
    """The command line."""
    import argparse

    main_parser = argparse.ArgumentParser(prog="neurotier", description=__doc__)
    main_parser.add_argument("--version", action="version", version=f"neurotier {__version__}")
    commands = main_parser.add_subparsers(dest="command", required=True)
    commands.add_parser("meter", help="measure any command and its whole process tree")
    described = {
        "analyze-participant": "analyse all images of one participant on the work tier",
        "get-images": "fetch one participant's images to the dataset tier",
        "drop-images": "drop one participant's images from the dataset tier",
    }
    for name, text in described.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("participant", help="participant's folder in the dataset, [SITE/]sub-LABEL")
        command.add_argument("--results", type=absolute, required=True, help="results folder of the run")
        command.add_argument("--log", type=absolute, required=True, help="file that takes what is printed")
        if name != "analyze-participant":
            command.add_argument("--marker", type=absolute, required=True, help="file to write when done")
    return main_parser


def absolute(path: str) -> Path:
    """A path that still holds when a phase has changed its working folder."""
    from pathlib import Path

    return Path(path).absolute()


if __name__ == "__main__":
    sys.exit(main())
