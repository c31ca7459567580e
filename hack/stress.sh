#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests 20 times in a row ($COUNT) while every core is busy with something else: a test that
# depends on how fast the machine is fails here. $RUN limits the tests as go test -run does.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: make test-stress PACKAGES=./engine/cache/queue [RUN=TestName] [COUNT=20]" >&2; exit 2; }

# Built beforehand, so that what is busy is the tests and not the compiler.
go test -race -run '^$' "$@" >/dev/null

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$(getconf _NPROCESSORS_ONLN)"); do
	(while :; do :; done) &
	busy+=($!)
done
go test -race -failfast -timeout 60m -count "${COUNT:-20}" -run "${RUN:-.}" "$@"
