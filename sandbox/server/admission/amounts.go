// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// sorted returns amounts in the order of their names.
func sorted(amounts corev1.ResourceList) iter.Seq2[corev1.ResourceName, resource.Quantity] {
	return func(yield func(corev1.ResourceName, resource.Quantity) bool) {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if !yield(name, amounts[name]) {
				return
			}
		}
	}
}

// checkAmounts returns in which ways requests and limits do not keep to an item of a LimitRange.
func checkAmounts(l corev1.LimitRangeItem, requests, limits corev1.ResourceList) (errs []error) {
	for name, amount := range sorted(l.Min) {
		errs = append(errs, atLeast(l.Type, name, amount, requests, limits))
	}
	for name, amount := range sorted(l.Max) {
		errs = append(errs, atMost(l.Type, name, amount, requests, limits))
	}
	for name, ratio := range sorted(l.MaxLimitRequestRatio) {
		errs = append(errs, inRatio(l.Type, name, ratio, requests, limits))
	}
	return errs
}

// atLeast returns an error if a request or a limit is less than the minimum.
func atLeast(kind corev1.LimitType, name corev1.ResourceName, least resource.Quantity, requests, limits corev1.ResourceList) error {
	request, requested := requests[name]
	limit, limited := limits[name]
	switch {
	case !requested:
		return fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", name, kind, least.String())
	case request.Cmp(least) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, kind, least.String(), request.String())
	case limited && limit.Cmp(least) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", name, kind, least.String(), limit.String())
	}
	return nil
}

// atMost returns an error if a request or a limit is more than the maximum.
func atMost(kind corev1.LimitType, name corev1.ResourceName, most resource.Quantity, requests, limits corev1.ResourceList) error {
	request, requested := requests[name]
	limit, limited := limits[name]
	switch {
	case !limited:
		return fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", name, kind, most.String())
	case limit.Cmp(most) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", name, kind, most.String(), limit.String())
	case requested && request.Cmp(most) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, kind, most.String(), request.String())
	}
	return nil
}

// requestAtMost returns an error if a request is more than the maximum.
func requestAtMost(kind corev1.LimitType, name corev1.ResourceName, most resource.Quantity, requests corev1.ResourceList) error {
	request, requested := requests[name]
	switch {
	case !requested:
		return fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", name, kind, most.String())
	case request.Cmp(most) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, kind, most.String(), request.String())
	}
	return nil
}

// inRatio returns an error if a limit is too many times its request.
func inRatio(kind corev1.LimitType, name corev1.ResourceName, most resource.Quantity, requests, limits corev1.ResourceList) error {
	request, limit := requests[name], limits[name]
	switch {
	case request.IsZero():
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, kind, most.String())
	case limit.IsZero():
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, kind, most.String())
	}
	if ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); ratio > most.AsApproximateFloat64() {
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, kind, most.String(), ratio)
	}
	return nil
}

func requested(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }

func limited(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }

// podAmounts returns the requests or the limits of a whole Pod. Init containers run one after the other before the others, and
// sidecars run beside all that follow them. Amounts of the Pod itself come first.
func podAmounts(s *corev1.PodSpec, of func(corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	total, sidecars, first := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range s.Containers {
		add(total, of(c.Resources))
	}
	for _, c := range s.InitContainers {
		now := of(c.Resources)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(total, now)
			add(sidecars, now)
			raise(first, sidecars)
			continue
		}
		now = maps.Clone(now)
		if now == nil {
			now = corev1.ResourceList{}
		}
		add(now, sidecars)
		raise(first, now)
	}
	raise(total, first)
	if s.Resources != nil {
		for name, amount := range of(*s.Resources) {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				total[name] = amount
			}
		}
	}
	return total
}

// add adds amounts to others.
func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		sum.Add(amount)
		to[name] = sum
	}
}

// raise makes amounts at least as large as others.
func raise(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if is, found := to[name]; !found || amount.Cmp(is) > 0 {
			to[name] = amount.DeepCopy()
		}
	}
}
