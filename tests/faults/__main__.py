"""Hold a fault campaign: ``python -m faults --count 1000 --seed 1``; exit 1 if an invariant was violated.

What a campaign has held is kept by commit, so the same command resumes where it was stopped, and other seeds and ranges
add to the table, which covers all sittings of the commit.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from dataclasses import replace

from faults.campaign import (
    MissingError,
    base_folder,
    check_able,
    describe,
    draw_kind,
    hold_all,
    prepare_all,
    repeating,
    table,
)
from faults.ledger import FOLDER, Ledger, detach
from faults.rooms import Room


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="number of trials")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first trial of the seed")
    parser.add_argument("--seed", type=int, help="seed of the campaign; drawn and told if not given")
    parser.add_argument("--jobs", type=int, default=2, help="trials side by side")
    parser.add_argument("--trial", type=int, help="hold this one trial of the seed again")
    parser.add_argument("--only", default="", help="only kinds that begin with this")
    parser.add_argument("--detached", action="store_true", help="go on without the terminal")
    parser.add_argument("--totals", action="store_true", help="print the table of this commit, and hold nothing")
    options = parser.parse_args()
    ledger = Ledger.of_checkout()
    if options.totals:
        return tell(ledger)
    if options.detached:
        log = FOLDER / "log.txt"
        if not detach(log):
            print(f"the campaign goes on by itself and writes to {log}; its table: make faults TOTALS=1")
            return 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    numbers = [options.trial]
    if options.trial is None:
        numbers = ledger.missing(range(options.first, options.first + options.count), seed, options.only)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background children ignore it
    begin_s = time.monotonic()
    held = violated = 0
    try:
        with base_folder() as folder:
            check_able(folder)
            trials = {number: draw_kind(number, seed, options.only) for number in numbers}
            print(f"fault campaign: {len(trials)} trials, seed {seed}", flush=True)
            prepared = prepare_all(Room(folder), trials, seed, options.jobs)
            for found in hold_all(seed, trials, prepared, options.jobs):
                outcome = replace(found, seed=seed, only=options.only)
                held += 1
                violated += bool(outcome.violations)
                if options.trial is None:
                    ledger.keep(outcome)
                if outcome.violations or options.trial is not None:
                    print(describe(outcome), flush=True)
                if held % 20 == 0:
                    print(f"{held} of {len(trials)} trials, {violated} with violations", flush=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    except MissingError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    print(f"\nseed {seed}: {held} trials in {time.monotonic() - begin_s:.0f} s")
    if options.trial is not None:
        return 1 if violated else 0
    return max(tell(ledger), int(held < len(numbers)))


def tell(ledger: Ledger) -> int:
    """Print the table of all sittings of the commit; 1 if a trial violated something."""
    outcomes = ledger.outcomes()
    print(f"\n{table(outcomes)}\n")
    bad = [outcome for outcome in outcomes if outcome.violations]
    for outcome in bad:
        print(f"violated: {outcome.kind}: {repeating(outcome)}: {outcome.violations[0][:150]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
