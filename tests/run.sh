#!/bin/sh
# All tests, in two parts: first by several workers, a group at a time (tests/conftest.py says which); then, one after the
# other, those that need the machine to themselves (mark "alone"); for these, if root, with the kernel's accounting of
# waits for storage, which Linux boots without. Arguments go to pytest: tests/run.sh tests/unit/test_meter.py -k sleep
# At their ends they print what took most CPU time. Fails if a part does, or if there is no test in either.
set -u
python=$(dirname "$0")/../.venv/bin/python
workers=$(($(nproc) + 1)) # one more than there are cores: tests also wait
[ $workers -le 4 ] || workers=4
no_test=5 # pytest's exit code; 1 is that tests failed, others are that it could not go on

"$python" -m pytest -v --numprocesses=$workers --dist=loadgroup --no-loadscope-reorder -m 'not alone' "$@"
together=$?
[ $together -le 1 ] || [ $together = $no_test ] || exit $together

delays=/proc/sys/kernel/task_delayacct
accounted=$(cat $delays 2>/dev/null)
if [ -w $delays ]; then
    trap 'echo "$accounted" >$delays' EXIT
    echo 1 >$delays
fi
"$python" -m pytest -v -m alone "$@"
alone=$?
[ $together != $no_test ] || exit $alone
[ $together = 0 ] || { echo "Tests of the first part failed: their list is above, before the second part"; exit 1; }
[ $alone = $no_test ] || exit $alone
