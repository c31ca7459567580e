// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// wrote reports whether the operator has written an object. A name alone is not enough: a Secret app-key may belong
// to anybody.
func (c *Cleaner) wrote(o metav1.Object) bool {
	return len(c.marksOf(o).annotations) > 0 || slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(c.managers(), e.Manager)
	})
}

// pauses reports whether an object pauses the operator. It does so whoever has made it.
func (c *Cleaner) pauses(one Found) bool {
	return one.Resource.GVR == configMaps && slices.Contains(c.op.PauseConfigMaps(), one.Name)
}

// own returns the places of the operator's own objects, under all its names. Its Leases come last: while the cleaner
// holds them, no process begins to work.
func (c *Cleaner) own() (out []Found) {
	add := func(gvr schema.GroupVersionResource, kind, namespace, name string) {
		one := Found{Resource: discovery.Resource{GVR: gvr, Kind: kind, Namespaced: true}, Namespace: namespace, Name: name, Own: true}
		if !slices.ContainsFunc(out, func(f Found) bool { return f.String() == one.String() }) {
			out = append(out, one)
		}
	}
	for _, op := range c.names {
		add(configMaps, "ConfigMap", c.home(op), op.Register())
		add(configMaps, "ConfigMap", c.home(op), op.PauseConfigMap())
		add(configMaps, "ConfigMap", c.home(op), op.LimitsConfigMap())
		add(secrets, "Secret", c.home(op), op.DigestKey())
		if c.op.NeedsWebhooks() {
			add(secrets, "Secret", c.home(op), op.WebhookSecret())
		}
	}
	for _, op := range c.names {
		add(leases, "Lease", c.home(op), op.LeaderLock())
	}
	return out
}
