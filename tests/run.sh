#!/bin/sh
# All tests, in two parts: first by several workers, a group at a time (tests/conftest.py says which); then, one after the
# other, those that need the machine to themselves (mark "alone"). If root, the kernel's accounting of waits for storage
# is off for the first, as after a boot, and on for the second. Arguments go to pytest:
# tests/run.sh tests/unit/test_meter.py -k sleep. At their ends they print what took most CPU time. Fails if a part does,
# or if there is no test in either.
set -u
python=$(dirname "$0")/../.venv/bin/python
workers=$(($(nproc) + 1)) # one more than there are cores: tests also wait
[ $workers -le 4 ] || workers=4
no_test=5 # pytest's exit code; 1 is that tests failed, others are that it could not go on

delays=/proc/sys/kernel/task_delayacct
accounted=$(cat $delays 2>/dev/null)
account() { # on (1) or off (0), if this user may say so
    if [ -w $delays ]; then echo "$1" >$delays; fi
}
trap 'account "$accounted"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

account 0
"$python" -m pytest -v --numprocesses=$workers --dist=loadgroup --no-loadscope-reorder -m 'not alone' "$@"
together=$?
[ $together -le 1 ] || [ $together = $no_test ] || exit $together

account 1
"$python" -m pytest -v -m alone "$@"
alone=$?
[ $together != $no_test ] || exit $alone
[ $together = 0 ] || { echo "Tests of the first part failed: their list is above, before the second part"; exit 1; }
[ $alone = $no_test ] || exit $alone
