#!/bin/sh
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs controlplane and kubectl into the folder DIR: build.sh DIR
set -eu
case "${1:?usage: build.sh DIR}" in
/*) dir=$1 ;;
*) dir=$PWD/$1 ;;
esac
cd "$(dirname "$0")"
GOWORK=off exec go run ./build "$dir"
