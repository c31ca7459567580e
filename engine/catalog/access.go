// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Access asks the server which of the verbs this process lacks for the resource in the namespace,
// or in all of them when it is empty. A verb for a subresource is written "patch status". The
// missing ones come back as they were given, in order. The error tells that the server could not
// be asked.
func (c *Catalog) Access(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, verbs ...string,
) (missing []string, err error) {
	for _, text := range verbs {
		verb, subresource, _ := strings.Cut(text, " ")
		allowed, err := c.Allowed(ctx, authorizationv1.ResourceAttributes{
			Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Subresource: subresource, Namespace: namespace, Verb: verb,
		})
		if err != nil {
			return nil, fmt.Errorf("reviewing access to %s: %w", gvr.GroupResource(), err)
		}
		if !allowed {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// Allowed asks the server whether this process may do something. The error tells that it could not be asked.
func (c *Catalog) Allowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := c.access.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
