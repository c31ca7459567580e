// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestACacheGoesForwardOnly(t *testing.T) {
	at := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "c", ResourceVersion: version}}
	}
	c := newCache()
	c.put(at("9"))
	c.put(at("10"))
	c.put(at("9"))
	if got := c.get("a", "b"); got == nil || got.GetResourceVersion() != "10" {
		t.Errorf("after an older version the cache has %v", got)
	}
	c.mark(at("10"), metav1.Now())
	if got := c.get("a", "b"); got.GetDeletionTimestamp() != nil {
		t.Error("an object that the cache no longer has is shown as deleted")
	}
	c.drop(types.NamespacedName{Namespace: "a", Name: "b"}, "c")
	c.put(at("11"))
	if got := c.in("a"); len(got) != 0 {
		t.Errorf("after its end the object is back: %v", got)
	}
	other := at("12")
	other.UID = "d"
	c.put(other)
	if got := c.get("a", "b"); got == nil {
		t.Error("another object of the same name is not taken in")
	}
}
