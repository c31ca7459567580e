#!/bin/sh
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the controlplane program as the file OUT: build.sh OUT
set -eu
case "${1:?usage: build.sh OUT}" in
/*) out=$1 ;;
*) out=$PWD/$1 ;;
esac
cd "$(dirname "$0")"
GOWORK=off exec go run ./build "$out"
