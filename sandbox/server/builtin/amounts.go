// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkResources checks the requests and limits of a container.
func checkResources(f *findings, path *field.Path, r corev1.ResourceRequirements) {
	limits, requests := path.Child("limits"), path.Child("requests")
	for _, name := range sorted(r.Limits) {
		checkAmount(f, limits.Key(string(name)), name, r.Limits[name])
	}
	for _, name := range sorted(r.Requests) {
		amount, plain := r.Requests[name], computeOrStorage(name)
		checkAmount(f, requests.Key(string(name)), name, amount)
		limit, limited := r.Limits[name]
		switch {
		case !limited && !plain:
			f.required(limits, "Limit must be set for non overcommitable resources")
		case !limited:
		case amount.Cmp(limit) != 0 && !plain:
			f.invalid(requests, amount.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
		case amount.Cmp(limit) > 0:
			f.invalid(requests, amount.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
		}
	}
}

func sorted(list corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(list)) }

// computeOrStorage reports whether a resource is one of Kubernetes that can be promised more than once.
func computeOrStorage(name corev1.ResourceName) bool {
	prefix, _, prefixed := strings.Cut(string(name), "/")
	return (!prefixed || strings.HasSuffix(prefix, "kubernetes.io")) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// checkAmount checks an amount of a resource of containers.
func checkAmount(f *findings, path *field.Path, name corev1.ResourceName, amount resource.Quantity) {
	checkResourceName(f, path, name)
	notNegativeAmount(f, path, amount)
	if !computeOrStorage(name) && amount.MilliValue()%1000 != 0 {
		f.invalid(path, amount, "must be an integer")
	}
}

// checkResourceName checks the name of a resource of containers.
func checkResourceName(f *findings, path *field.Path, name corev1.ResourceName) {
	f.each(path, name, utilvalidation.IsQualifiedName(string(name)))
	switch {
	case strings.Contains(string(name), "/"), strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return
	case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage:
		return
	case !slices.Contains(strings.Fields(otherResources), string(name)):
		f.invalid(path, name, "must be a standard resource type or fully qualified")
	}
	f.invalid(path, name, "must be a standard resource for containers")
}

// otherResources are the resources of Kubernetes that a quota has, and a container has not.
const otherResources = `requests.cpu requests.memory requests.ephemeral-storage requests.storage limits.cpu limits.memory limits.ephemeral-storage
	pods resourcequotas services services.nodeports services.loadbalancers replicationcontrollers secrets configmaps persistentvolumeclaims storage`

func notNegativeAmount(f *findings, path *field.Path, amount resource.Quantity) {
	if amount.Sign() < 0 {
		f.invalid(path, amount.String(), validation.IsNegativeErrorMsg)
	}
}
