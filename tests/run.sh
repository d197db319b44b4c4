#!/bin/sh
# All tests, in two parts: first by several workers, a file to each at a time; then, one after the other, those that
# need the machine to themselves (mark "alone"). Arguments go to pytest: tests/run.sh tests/unit/test_meter.py -k sleep
# Fails if a part does, or if both have no test.
set -u
python=$(dirname "$0")/../.venv/bin/python
workers=$(($(nproc) + 1)) # one more than there are cores: tests also wait
[ $workers -le 4 ] || workers=4
no_test=5

"$python" -m pytest -v --durations=15 --numprocesses=$workers --dist=loadfile --no-loadscope-reorder -m 'not alone' "$@"
together=$?
[ $together = 0 ] || [ $together = 1 ] || [ $together = $no_test ] || exit $together
"$python" -m pytest -v -m alone "$@"
alone=$?
[ $together != $no_test ] || exit $alone
[ $alone != $no_test ] || exit $together
[ $together != 0 ] && exit $together
exit $alone
