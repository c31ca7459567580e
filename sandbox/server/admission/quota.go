// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func quotas() schema.GroupResource { return schema.GroupResource{Resource: "resourcequotas"} }

// Charge returns why the ResourceQuotas of a namespace do not allow the object of a request, or nil. It comes last, when nothing
// else refuses the object.
func (c *Chain) Charge(r Request) error {
	now := &call{Request: r, objects: c.objects}
	if r.Namespace == "" || !isCharged(now) {
		return nil
	}
	all, err := list[corev1.ResourceQuota](c.objects, quotas(), r.Namespace)
	for _, quota := range all {
		if err := charge(now, quota); err != nil {
			return err
		}
	}
	return err
}

// isCharged reports whether a request may use more than before.
func isCharged(c *call) bool {
	switch c.Resource {
	case services(), claims():
		return c.Subresource == ""
	case pods():
		return c.isNew(pods()) || c.Subresource == "resize"
	}
	return c.isNew(c.Resource)
}

// charge returns why a quota does not allow the object of a request, or nil.
func charge(c *call, quota *corev1.ResourceQuota) error {
	var names []corev1.ResourceName
	for name := range quota.Spec.Hard {
		if countedBy(name) == c.Resource {
			names = append(names, name)
		}
	}
	next, err := newUse(c.Resource, c.Object)
	if err != nil || len(names) == 0 || !next.isIn(quota) {
		return err
	}
	if missing := next.missing(names); missing != "" {
		return c.forbidden("failed quota: %s: must specify %s", quota.Name, missing)
	}
	more := next.amounts
	if c.Old != nil {
		old, err := newUse(c.Resource, c.Old)
		if err != nil {
			return err
		}
		if old.isIn(quota) {
			more = subtract(more, old.amounts)
		}
	}
	more = masked(more, names)
	maps.DeleteFunc(more, func(_ corev1.ResourceName, n amount) bool { return n.Sign() <= 0 })
	used, err := Used(c.objects, quota)
	if err != nil {
		return err
	}
	return exceeded(c, quota, more, used)
}

// exceeded returns an error if a quota has less left than a request asks for.
func exceeded(c *call, quota *corev1.ResourceQuota, more, used corev1.ResourceList) error {
	sum := maps.Clone(used)
	add(sum, more)
	var names []corev1.ResourceName
	for name := range more {
		if total := sum[name]; total.Cmp(quota.Spec.Hard[name]) > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return c.forbidden("exceeded quota: %s, requested: %s, used: %s, limited: %s",
		quota.Name, printed(masked(more, names)), printed(masked(used, names)), printed(masked(quota.Spec.Hard, names)))
}

// printed returns amounts as in cpu=1,memory=1Gi.
func printed(amounts corev1.ResourceList) string {
	var parts []string
	for name, amount := range sorted(amounts) {
		parts = append(parts, fmt.Sprintf("%s=%s", name, amount.String()))
	}
	return strings.Join(parts, ",")
}

// masked returns the amounts of these names.
func masked(amounts corev1.ResourceList, names []corev1.ResourceName) corev1.ResourceList {
	out := maps.Clone(amounts)
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ amount) bool { return !slices.Contains(names, name) })
	return out
}

// subtract returns amounts less others.
func subtract(from, amounts corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range from {
		rest := amount.DeepCopy()
		rest.Sub(amounts[name])
		out[name] = rest
	}
	return out
}

// Used returns how much of a quota the stored objects of its namespace use.
func Used(objects Objects, quota *corev1.ResourceQuota) (corev1.ResourceList, error) {
	out, resources := corev1.ResourceList{}, map[schema.GroupResource]bool{}
	for name := range quota.Spec.Hard {
		out[name] = zero()
		resources[countedBy(name)] = true
	}
	for resource := range resources {
		for _, o := range objects.List(resource, quota.Namespace) {
			use, err := newUse(resource, o)
			if err != nil {
				return nil, err
			}
			if use.isIn(quota) {
				add(out, masked(use.amounts, slices.Collect(maps.Keys(quota.Spec.Hard))))
			}
		}
	}
	return out, nil
}

// countedBy returns the resource whose objects a name of a quota counts. Amounts of computers are those of Pods.
func countedBy(name corev1.ResourceName) schema.GroupResource {
	if resource, counts := strings.CutPrefix(string(name), "count/"); counts {
		return schema.ParseGroupResource(resource)
	}
	switch name {
	case corev1.ResourceConfigMaps, corev1.ResourceQuotas, corev1.ResourceReplicationControllers, corev1.ResourceSecrets, corev1.ResourceServices:
		return schema.GroupResource{Resource: string(name)}
	case corev1.ResourceServicesLoadBalancers, corev1.ResourceServicesNodePorts:
		return services()
	case corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage:
		return claims()
	}
	if strings.Contains(string(name), ofClass) {
		return claims()
	}
	return pods()
}

// newUse returns how much an object uses.
func newUse(resource schema.GroupResource, o *unstructured.Unstructured) (use, error) {
	out := use{amounts: corev1.ResourceList{corev1.ResourceName("count/" + resource.String()): one()}}
	var err error
	switch resource {
	case pods():
		err = out.pod(o)
	case services():
		err = out.service(o)
	case claims():
		err = out.claim(o)
	default:
		if resource.Group == "" {
			out.amounts[corev1.ResourceName(resource.Resource)] = one()
		}
	}
	if err != nil {
		return out, internal(err)
	}
	return out, nil
}
