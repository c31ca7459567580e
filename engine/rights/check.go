// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"

	authorization "k8s.io/api/authorization/v1"
)

// Reviewer asks whether an account may do something, mostly by a SelfSubjectAccessReview.
type Reviewer func(context.Context, authorization.ResourceAttributes) (allowed bool, err error)

// Attributes are the right as a review has it.
func (r Rule) Attributes() authorization.ResourceAttributes {
	return authorization.ResourceAttributes{
		Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		Verb: r.Verb, Name: r.Name, Namespace: r.Namespace,
	}
}

// Check asks for each right and returns those that are missing, in order. The error tells that the
// reviewer could not be asked.
func Check(ctx context.Context, review Reviewer, rules []Rule) (missing []Rule, err error) {
	for _, r := range rules {
		allowed, err := review(ctx, r.Attributes())
		if err != nil {
			return nil, fmt.Errorf("reviewing the right to %s: %w", r, err)
		}
		if !allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}
