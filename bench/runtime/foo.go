// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var fooVersion = schema.GroupVersion{Group: "samplecontroller.k8s.io", Version: "v1alpha1"}

// Foo is samples/foo's, as controller-gen would write what belongs to it.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   FooSpec   `json:"spec"`
	Status FooStatus `json:"status,omitzero"`
}

// FooSpec is what a Foo asks for.
type FooSpec struct {
	DeploymentName string `json:"deploymentName"`
	Replicas       int64  `json:"replicas,omitempty"`
}

// FooStatus is what it has.
type FooStatus struct {
	AvailableReplicas *int64             `json:"availableReplicas,omitempty"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

// FooList is a list of them.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Foo `json:"items"`
}

// DeepCopyInto copies a Foo.
func (f *Foo) DeepCopyInto(out *Foo) {
	*out = *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if f.Status.AvailableReplicas != nil {
		n := *f.Status.AvailableReplicas
		out.Status.AvailableReplicas = &n
	}
	if f.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(f.Status.Conditions))
		for i := range f.Status.Conditions {
			f.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
		}
	}
}

// DeepCopyObject copies a Foo.
func (f *Foo) DeepCopyObject() runtime.Object {
	out := &Foo{}
	f.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies a list.
func (l *FooList) DeepCopyObject() runtime.Object {
	out := &FooList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Foo, len(l.Items))
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func addFoo(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(fooVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, fooVersion)
}
