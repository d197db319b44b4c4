"""Hold a fault campaign: ``python -m faults --count 1000 --seed 1``; exit 1 if an invariant was violated."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time

from faults.campaign import (
    MissingError,
    Outcome,
    base_folder,
    check_able,
    describe,
    draw_kind,
    hold_all,
    prepare_all,
    table,
)
from faults.rooms import Room


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="number of trials")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first trial of the seed")
    drawn = random.SystemRandom().randrange(10**6)
    parser.add_argument("--seed", type=int, default=drawn, help="seed of the campaign; drawn and shown if not given")
    parser.add_argument("--jobs", type=int, default=2, help="trials side by side")
    parser.add_argument("--trial", type=int, help="hold this one trial of the seed again")
    parser.add_argument("--only", default="", help="only kinds that begin with this")
    options = parser.parse_args()
    seed, only = options.seed, options.only
    numbers = range(options.first, options.first + options.count) if options.trial is None else [options.trial]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background children ignore it
    begin_s = time.monotonic()
    held: list[Outcome] = []
    try:
        with base_folder() as folder:
            check_able(folder)
            trials = {number: draw_kind(number, seed, only) for number in numbers}
            print(f"fault campaign: {len(trials)} trials, seed {seed}", flush=True)
            prepared = prepare_all(Room(folder), trials, seed, options.jobs)
            for outcome in hold_all(seed, trials, prepared, options.jobs):
                held.append(outcome)
                if outcome.violations or options.trial is not None:
                    print(describe(outcome, only), flush=True)
                if len(held) % 20 == 0:
                    print(f"{len(held)} of {len(trials)} trials", flush=True)
    except (KeyboardInterrupt, SystemExit):
        print("stopped", file=sys.stderr)
    except MissingError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    print(f"\n{table(held)}\n\nseed {seed}: {len(held)} trials in {time.monotonic() - begin_s:.0f} s")
    return int(len(held) < len(numbers) or any(outcome.violations for outcome in held))


if __name__ == "__main__":
    sys.exit(main())
