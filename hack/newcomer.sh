#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# The road of a newcomer, without a cluster: init, play, kubectl apply, a change of the file and its new child, test. It
# needs operator and kubectl on the PATH.
set -euo pipefail

dir=$(mktemp -d)
cd "$dir"
pid=
trap '[ -z "$pid" ] || kill "$pid" 2> /dev/null; wait; rm -rf "$dir"' EXIT

step() { printf '\n# %s\n' "$*"; }
fail() {
	printf 'newcomer.sh: %s\n' "$*" >&2
	cat lines >&2
	exit 1
}
# await waits until play has written a line.
await() {
	for _ in $(seq 600); do
		if grep -q -e "$1" lines; then return; fi
		sleep 0.05
	done
	fail "there is no line $1"
}

step "An operator, from nothing"
operator init webapp --resource webapps.v1alpha1.example.com --kind WebApp
operator validate --config webapp

step "Play with it"
operator play --config webapp > lines &
pid=$!
await 'export KUBECONFIG='
KUBECONFIG=$(sed -n 's/.*export KUBECONFIG=//p' lines)
export KUBECONFIG
await 'It is not a cluster: no containers run'
await 'operator starts'

step "Make an object: its child comes, with Pods"
kubectl apply -f webapp/example.yaml
kubectl wait webapp/example --for=condition=Ready --timeout=30s
kubectl get webapps,deployments,pods
await '^[0-9:.]*  pods/example-.*Running, ready'

step "What is wrong is refused in the API server's words"
if kubectl patch webapp example --type=merge -p '{"spec":{"replicas":99}}' 2> refusal; then fail "99 replicas are accepted"; fi
grep 'should be less than or equal to 50' refusal

step "Change the file: a fault is reported, and then the new child comes"
cp webapp/operator.yaml good.yaml
sed -i 's/self.spec.replicas/self.spec.replcas/' webapp/operator.yaml
await 'operator.yaml:[0-9]*:[0-9]*: .*unknown field "replcas"'
sed 's/^\( *\)apply:$/&\n\1  settings:\n\1    apiVersion: v1\n\1    kind: ConfigMap\n\1    metadata: {name: "${self.metadata.name}-settings"}\n\1    data: {replicas: "${string(self.spec.replicas)}"}/' good.yaml > webapp/operator.yaml
await 'configmaps/example-settings  *children  *created'
[ "$(kubectl get configmap example-settings -o jsonpath='{.data.replicas}')" = 2 ] || fail "the new child is another one"

step "Test it"
cat > webapp/settings_test.yaml << 'EOF'
given: example.yaml
cases:
  - name: A WebApp has its settings
    steps:
      - patch: {webapps/example: {spec: {replicas: 3}}}
    expect:
      objects: {configmaps/example-settings: {data: {replicas: "3"}}}
EOF
operator test webapp

step "It ends, and leaves nothing"
kill "$pid" # a shell starts programs in the background so that they ignore Ctrl-C
wait "$pid"
pid=
[ ! -e "$KUBECONFIG" ] || fail "$KUBECONFIG is left"
