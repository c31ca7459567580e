// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestObject holds what typed values become that are applied: unset fields are left out, so that no manager owns them.
func TestObject(t *testing.T) {
	two := int32(2)
	now := metav1.NewTime(time.Unix(0, 0))
	meta := metav1.ObjectMeta{Name: "a", CreationTimestamp: now}
	tests := map[string]struct {
		value any
		want  string
	}{
		"a Deployment": {
			&appsv1.Deployment{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
				Spec: appsv1.DeploymentSpec{Replicas: &two, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "i"}},
					Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				}}},
				Status: appsv1.DeploymentStatus{Replicas: 1},
			},
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, template: {spec: {containers: [{name: c, image: i}], volumes: [{name: v, emptyDir: {}}]}}}}`,
		},
		"a Service, by value": {
			corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`,
		},
		"a map, as it is": {
			map[string]any{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a", "creationTimestamp": nil}, "spec": map[string]any{"a": nil, "n": 1 << 60}, "status": map[string]any{}},
			`{apiVersion: v1, kind: A, metadata: {name: a}, spec: {a: null, "n": 1152921504606846976}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Object(tt.value)
			if err != nil {
				t.Fatal(err)
			}
			want := yamlTree(t, tt.want)
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
	for name, value := range map[string]any{
		"*v1.Deployment has the first two in its TypeMeta": &appsv1.Deployment{ObjectMeta: meta},
		"apiVersion, kind and metadata.name are required":  map[string]any{},
		"it is not an object in JSON":                      3,
	} {
		if _, err := Object(value); err == nil || !strings.HasSuffix(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// TestAs holds that objects become typed, that what is not there stays so, and that errors are handed on.
func TestAs(t *testing.T) {
	object := func(replicas any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": replicas, "x": true},
		}}
	}
	down := errors.New("connection refused")
	from := func(o *unstructured.Unstructured, err error) (*appsv1.Deployment, error) {
		return As[appsv1.Deployment](func() (*unstructured.Unstructured, error) { return o, err }())
	}
	if d, err := from(object(int64(2)), nil); err != nil || *d.Spec.Replicas != 2 || d.Kind != "Deployment" {
		t.Errorf("%v, %v", d, err)
	}
	if d, err := from(nil, nil); d != nil || err != nil {
		t.Errorf("of nothing: %v, %v", d, err)
	}
	if d, err := from(object(int64(2)), down); d != nil || !errors.Is(err, down) {
		t.Errorf("with an error: %v, %v", d, err)
	}
	const says = "decoding apps/v1 Deployment a: spec.replicas is text: "
	if d, err := As[appsv1.Deployment](object("2")); d != nil || err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("of another type: %v, %v", d, err)
	}
	if list, err := AsList[appsv1.Deployment]([]*unstructured.Unstructured{object(int64(1)), object(int64(2))}, nil); err != nil || len(list) != 2 || *list[1].Spec.Replicas != 2 {
		t.Errorf("a list: %v, %v", list, err)
	}
	if _, err := AsList[appsv1.Deployment]([]*unstructured.Unstructured{object("1")}); err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("a list with another type: %v", err)
	}
	if _, err := AsList[appsv1.Deployment](nil, down); !errors.Is(err, down) {
		t.Errorf("a list with an error: %v", err)
	}
}
