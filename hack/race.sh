#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a test program for go test -exec, and once more if the race detector itself crashed, as it may when a long test has
# used up its epochs. A data race, a panic or a failure is final. stderr comes at the end: it goes to a file, because a
# pipe would stay open as long as a child has it. A second run is noted in the file $RACE_LOG, because go test is silent
# about a program that passes. go test caches by the test log, which it looks for, but does not ask for with -exec.
set -uo pipefail
said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'kill -QUIT "$pid"' QUIT # go test asks for the stacks of a program that hangs

run() {
	(trap - INT QUIT; exec "$1" -test.testlogfile="${1%/*}/testlog.txt" "${@:2}") 2> "$said" & # A shell ignores both for what is in the background.
	pid=$!
	until wait "$pid"; code=$?; ! kill -0 "$pid" 2> /dev/null; do :; done
	cat "$said" >&2
}
says() { grep -q "$@" "$said"; }

run "$@"
if [ "$code" != 0 ] && ! says -e 'WARNING: DATA RACE' -e '^panic: ' &&
	{ says 'ThreadSanitizer: CHECK failed' || { says SIGSEGV && says __tsan::; }; }; then
	echo "race.sh: the race detector crashed, so $1 runs once more" | tee -a "${RACE_LOG:-/dev/null}" >&2
	run "$@"
fi
exit "$code"
