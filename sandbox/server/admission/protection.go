// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protection gives new claims, volumes and classes of volume attributes the finalizers that keep them while they are in use.
func protection() step {
	finalizers := map[schema.GroupResource]string{
		claims():                        "kubernetes.io/pvc-protection",
		{Resource: "persistentvolumes"}: "kubernetes.io/pv-protection",
		{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}: "kubernetes.io/vac-protection",
	}
	return step{complete: func(c *call) error {
		finalizer, found := finalizers[c.Resource]
		if has := c.Object.GetFinalizers(); found && c.isNew(c.Resource) && !slices.Contains(has, finalizer) {
			c.Object.SetFinalizers(append(has, finalizer))
		}
		return nil
	}}
}
