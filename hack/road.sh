#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Handwerk Authors
# SPDX-License-Identifier: Apache-2.0
#
# The road of an operator, from an empty folder to a cluster that has nothing of it: init, validate, bundle, apply,
# change, upgrade, cleanup, delete. It needs operator and kubectl on the PATH, and an administrator's access to a
# cluster whose nodes can run the image:
#
#	hack/road.sh [IMAGE]
set -euo pipefail

image=${1:-handwerk:dev}
# What is the operator's bears its name, and what is the user's does not.
operator=roadworks
system=road-system
mine=road
object=sites.road.example.com/example # by its full name: other groups may have sites, too

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

step() { printf '\n# %s\n' "$*"; }
fail() {
	printf 'road.sh: %s\n' "$*" >&2
	exit 1
}
# await waits until a field of an object has a value.
await() { kubectl wait -n "$1" "$2" --for=jsonpath="$3" --timeout=2m; }
field() { kubectl get -n "$1" "$2" -o jsonpath="$3"; }
bundle() { operator bundle --config "$operator" --namespace "$system" --image "$image" -o deploy; }
# list writes all objects of the cluster into a file. Events and CRDs are left out: the ones are history, and of the others
# the user decides. A kind that goes while it is listed is a failure, after which all are listed once more.
list() {
	for _ in 1 2 3 4 5; do
		if kubectl api-resources --verbs=list -o name | grep -v -e '^events' -e '^customresourcedefinitions' | paste -sd, |
			xargs -I{} kubectl get {} -A -o json > all.json 2> faults; then return; fi
	done
	fail "listing all objects: $(cat faults)"
}
# without lists all objects, and fails for those that have a word.
without() {
	list
	if grep -n -e "$1" all.json; then fail "$2"; fi
}

step "An operator, from nothing"
operator init "$operator" --resource sites.v1alpha1.road.example.com
operator validate --config "$operator"

step "Deploy it"
kubectl create namespace "$system"
kubectl label namespace "$system" pod-security.kubernetes.io/enforce=restricted
bundle
kubectl apply --server-side -k deploy
kubectl rollout status -n "$system" "deployment/handwerk-$operator" --timeout=2m

step "Make an object: its children come"
kubectl create namespace "$mine"
kubectl apply -n "$mine" -f "$operator/example.yaml"
kubectl wait -n "$mine" "$object" --for=condition=Ready --timeout=2m
child=$(field "$mine" deployment/example '{.metadata.uid}')

step "Change the object: its children follow"
kubectl patch -n "$mine" "$object" --type=merge -p '{"spec":{"replicas":3}}'
await "$mine" "$object" '{.status.readyReplicas}=3'

step "Upgrade the operator: the process is replaced, and the children stay"
before=$(field "$system" "deployment/handwerk-$operator" '{.spec.template.spec.volumes[0].configMap.name}')
sed -i 's/^\( *\)replicas: \${self.spec.replicas}$/&\n\1revisionHistoryLimit: 3/' "$operator/operator.yaml"
cat >> "$operator/operator.yaml" << EOF
      - {id: resized, causes: [update], field: spec.replicas, event: {reason: Resized, message: "\${string(self.spec.replicas)} replicas"}}
      - {id: farewell, causes: [delete], log: {message: it goes}}
EOF
operator validate --config "$operator"
bundle
kubectl apply --server-side -k deploy
kubectl rollout status -n "$system" "deployment/handwerk-$operator" --timeout=2m
after=$(field "$system" "deployment/handwerk-$operator" '{.spec.template.spec.volumes[0].configMap.name}')
[ "$before" != "$after" ] || fail "another configuration is in the same ConfigMap $before"
await "$mine" deployment/example '{.spec.revisionHistoryLimit}=3'
await "$mine" "$object" "{.metadata.finalizers[0]}=$operator.handwerk.dev/finalizer"
[ "$child" = "$(field "$mine" deployment/example '{.metadata.uid}')" ] || fail "the child was recreated"
kubectl wait -n "$mine" "$object" --for=condition=Ready --timeout=2m

step "Uninstall it: first its marks on what stays"
operator cleanup --config "$operator" --namespace "$system" --stop --yes
without "$operator.handwerk.dev" "these marks are left"
[ -z "$(field "$mine" "$object" '{.status.conditions[*].type}')" ] || fail "conditions are left"
[ "$child" = "$(field "$mine" deployment/example '{.metadata.uid}')" ] || fail "the child went with the operator"

step "Then the rest"
kubectl delete -n "$mine" "${object%/*}" --all
kubectl wait -n "$mine" deployment/example --for=delete --timeout=2m
kubectl delete -k deploy --ignore-not-found
kubectl wait -n "$system" pods,replicasets --all --for=delete --timeout=2m
without "$operator" "this is left"

kubectl delete namespace "$mine" "$system"
step "The cluster has nothing of the operator"
