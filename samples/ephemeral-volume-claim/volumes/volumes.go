// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package volumes has the function of samples/ephemeral-volume-claim.
package volumes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// volumeClaim is an EphemeralVolumeClaim: a volume that lives as long as the claim.
type volumeClaim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size             resource.Quantity `json:"size"`
		StorageClassName *string           `json:"storageClassName,omitempty"`
	} `json:"spec"`
	Status struct {
		Claim    string             `json:"claim,omitempty"`
		Phase    string             `json:"phase,omitempty"`
		Capacity *resource.Quantity `json:"capacity,omitempty"`
	} `json:"status"`
}

// Claim keeps a PersistentVolumeClaim for each EphemeralVolumeClaim, with its name, size and labels, and
// reports its state. It changes the size only after the claim is bound, because the API server refuses the change
// before.
func Claim(ctx context.Context, r *dsl.TypedRequest[volumeClaim]) error {
	claim, err := dsl.As[corev1.PersistentVolumeClaim](r.Children.Apply(ctx, &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Object.Name, Labels: r.Object.Labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: r.Object.Spec.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: r.Object.Spec.Size}},
		},
	}))
	if err != nil {
		return err
	}
	r.Object.Status.Claim, r.Object.Status.Phase = claim.Name, string(claim.Status.Phase)
	if capacity, known := claim.Status.Capacity[corev1.ResourceStorage]; known {
		r.Object.Status.Capacity = &capacity
	}
	return nil
}

// The resource of the children, and the permissions on it.
const (
	volumeVerbs    = "get,create,patch"
	volumeChildren = "persistentvolumeclaims.v1"
)

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "volumes.Claim", Func: dsl.Typed(Claim), Doc: "keeps a PersistentVolumeClaim as an EphemeralVolumeClaim asks for",
		Needs: []dsl.Need{dsl.MustParseNeed(volumeVerbs, volumeChildren), dsl.MustParseNeed("patch", "self/status")},
	})
}

// Operator is operator.yaml written in Go.
func Operator() *dsl.Operator {
	op := dsl.New("ephemeral-volume-claim")
	op.Resource("ephemeralvolumeclaims.v1alpha1.samples.handwerk.dev", func(claim *dsl.Resource) {
		claim.Owns("persistentvolumeclaims.v1")
		claim.OnReconcile("claim", dsl.Typed(Claim), dsl.Needs(volumeVerbs, volumeChildren), dsl.Needs("patch", "self/status"))
	})
	return op
}
