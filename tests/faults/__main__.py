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
    repeating,
    table,
)
from faults.rooms import Room


def main() -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="number of trials")
    parser.add_argument("--seed", type=int, help="seed of the campaign; drawn and told if not given")
    parser.add_argument("--jobs", type=int, default=2, help="trials side by side")
    parser.add_argument("--trial", type=int, help="hold this one trial of the seed again")
    parser.add_argument("--only", default="", help="only kinds that begin with this")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    numbers = [options.trial] if options.trial is not None else range(options.count)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background children ignore it
    begin = time.monotonic()
    outcomes: list[Outcome] = []
    try:
        with base_folder() as folder:
            check_able(folder)
            trials = {number: draw_kind(number, seed, options.only) for number in numbers}
            print(f"fault campaign: {len(trials)} trials, seed {seed}", flush=True)
            prepared = prepare_all(Room(folder), sorted(set(trials.values())), options.jobs)
            try:
                for outcome in hold_all(seed, trials, prepared, options.jobs):
                    outcomes.append(outcome)
                    if outcome.violations or options.trial is not None:
                        print(describe(outcome, seed, options.only), flush=True)
                    if len(outcomes) % 20 == 0:
                        bad = sum(bool(outcome.violations) for outcome in outcomes)
                        print(f"{len(outcomes)} of {len(trials)} trials, {bad} with violations", flush=True)
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)
    except MissingError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    bad_ones = [outcome for outcome in outcomes if outcome.violations]
    print(f"\n{table(outcomes)}\n\nseed {seed}, {time.monotonic() - begin:.0f} s")
    for outcome in bad_ones:
        print(f"violated: {outcome.kind}: {repeating(outcome, seed, options.only)}: {outcome.violations[0][:150]}")
    return 1 if bad_ones or len(outcomes) < len(trials) else 0


if __name__ == "__main__":
    sys.exit(main())
