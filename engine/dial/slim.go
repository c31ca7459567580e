// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Slim reaches a resource as whole does, but for patches: these it sends by another way, on which answers come without
// managedFields, as those of Clients.Slim do.
func Slim(whole, slim dynamic.ResourceInterface) dynamic.ResourceInterface {
	return patches{whole, slim}
}

type patches struct {
	dynamic.ResourceInterface
	slim dynamic.ResourceInterface
}

// Patch sends a patch.
func (p patches) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	return p.slim.Patch(ctx, name, kind, data, options, sub...)
}
