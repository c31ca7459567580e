// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// Lookup returns a lookup that asks the cluster that config reaches what it serves. What it does not
// serve is guessed, as a resource whose CRD is still to come. An error means that the requests failed.
func Lookup(ctx context.Context, op *dsl.Operator, config *rest.Config) (rbac.Lookup, error) {
	c, err := discovery.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	return lookup(ctx, op, c), nil
}

// lookup looks up in a catalog.
func lookup(ctx context.Context, op *dsl.Operator, c *discovery.Catalog) rbac.Lookup {
	guess := rbac.Guess(op)
	return func(name dsl.ResourceName, kind schema.GroupVersionKind) rbac.Served {
		var served discovery.Resource
		var err error
		if name.Resource != "" {
			served, err = c.Resolve(ctx, name)
		} else {
			served, err = c.KindOf(ctx, kind)
		}
		if err != nil {
			return guess(name, kind)
		}
		return rbac.Served{Resource: served.GVR.Resource, Namespaced: served.Namespaced, Status: served.Status}
	}
}

// Reviewer returns what asks the API server that config reaches about rights: about its own account,
// or when one is given, as in "system:serviceaccount:team-a:operator", about that one, which takes the
// right to create subjectaccessreviews.
func Reviewer(config *rest.Config, account string) (rbac.Reviewer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	typed, err := kube.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if account == "" {
		return discovery.New(nil, nil, typed.AuthorizationV1()).Allowed, nil
	}
	groups := groupsOf(account)
	return func(ctx context.Context, about authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: account, Groups: groups, ResourceAttributes: &about,
		}}
		answer, err := typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}, nil
}

// groupsOf are the groups that the API server puts an account into.
func groupsOf(account string) []string {
	out := []string{"system:authenticated"}
	if rest, is := strings.CutPrefix(account, "system:serviceaccount:"); is {
		namespace, _, _ := strings.Cut(rest, ":")
		out = append(out, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return out
}
