// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the kind WebApp, as kubebuilder lays out an API.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WebApp is an image that runs.
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WebAppSpec   `json:"spec"`
	Status WebAppStatus `json:"status,omitzero"`
}

// WebAppSpec says what runs.
type WebAppSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas,omitempty"`
}

// WebAppStatus says what has come of it.
type WebAppStatus struct {
	ReadyReplicas int32 `json:"readyReplicas"`
}

// WebAppList is a list of WebApps.
type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []WebApp `json:"items"`
}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "apps.example.com", Version: "v1"}
	s.AddKnownTypes(version, &WebApp{}, &WebAppList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}

// DeepCopyObject returns a copy, as a generator would write it.
func (w *WebApp) DeepCopyObject() runtime.Object {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject returns a copy.
func (l *WebAppList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = make([]WebApp, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*WebApp)
	}
	return &out
}
