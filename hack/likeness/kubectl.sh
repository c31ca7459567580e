#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs one function of Kubernetes' command tests: kubectl.sh FUNCTION, in a prepared copy of their files. A failed command
# does not end the function. It is noted in a line with @@FAILED, so that one difference does not hide the next. One in a
# substitution or a pipe counts only if the whole command fails.
export KUBE_TEMP=$HOME TMPDIR=$HOME LANG=C TERM=xterm ALLOW_SKEW=1
export SUPPORTED_RESOURCES=("*") CONTEXT=test
noteFailures() { :; }
ignoreFailures() { :; }
source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh >/dev/null 2>&1
trap - ERR
set +o errexit +o nounset
source variables.sh
kube_flags=(-s "$SERVER" --insecure-skip-tls-verify)
kube_flags_without_token=("${kube_flags[@]}")
kube_flags_with_token=("${kube_flags[@]}" "--token=$TOKEN")
kube::util::ensure-gnu-sed
kubectl get node 127.0.0.1 >/dev/null 2>&1 || kubectl create -f node.json >/dev/null
# The tests do without these objects where they are, and upstream allows everything to everybody.
kubectl create -f hack/testdata/kubernetes-service.yaml >/dev/null 2>&1
kubectl create clusterrolebinding test-all --clusterrole=cluster-admin --group=system:authenticated --group=the-group >/dev/null 2>&1
cp hack/testdata/ca/ca.crt "$KUBE_TEMP/apiserver.crt"
exec 9>&1
noteFailures() { trap '[ "$BASH_SUBSHELL" != 0 ] || echo "@@FAILED ${BASH_SOURCE[0]##*/}:${LINENO}" >&9' ERR; }
ignoreFailures() { trap - ERR; }
set -o errtrace -o pipefail
noteFailures
"$1"
ignoreFailures
echo "@@END"
