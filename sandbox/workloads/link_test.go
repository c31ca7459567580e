// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDecodingLeavesOutManagedFieldsAlone(t *testing.T) {
	kinds := table()
	pod := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == "Pod" })]
	for object, want := range map[string]string{
		`{"metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}],"finalizers":["f"]},"spec":{"nodeName":"n"}}`: "a [f] n",
		`{"spec":{"nodeName":"n"},"metadata":{"finalizers":[],"managedFields":[],"name":"b"}}`:                                         "b [] n",
		`{"metadata":{"name":"c"},"managedFields":[{"manager":"m"}],"spec":{"nodeName":"n"}}`:                                          "c [] n",
	} {
		_, data := eventOf([]byte(`{"type":"ADDED","object":` + object + "}\n"))
		o, err := pod.decode(data)
		if err != nil {
			t.Fatalf("decoding %s: %v", object, err)
		}
		if got := fmt.Sprint(o.GetName(), " ", o.GetFinalizers(), " ", o.(*corev1.Pod).Spec.NodeName); got != want || o.GetManagedFields() != nil || string(data) != object {
			t.Errorf("%s becomes %s with managed fields %v, want %s, and is %s itself", object, got, o.GetManagedFields(), want, data)
		}
	}
}
