// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// User is an identity with few rights: discovery, and those of its roles.
type User struct {
	// Name is the user's name, also in the audit log.
	Name string

	cluster *Cluster
}

// User returns a new user. Its name begins with the given one and is unique.
func (c *Cluster) User(name string) *User {
	return &User{Name: name + "-" + rand.String(8), cluster: c}
}

// Config returns the user's config: the admin's, with impersonation.
func (u *User) Config() *rest.Config {
	config := u.cluster.Config()
	config.Impersonate.UserName = u.Name
	return config
}

// Rule allows verbs on comma-separated resources of one API group.
func Rule(group, resources string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Split(resources, ","), Verbs: verbs}
}

// Role is a set of rules for a user. It can be revoked and granted again.
type Role struct {
	user      *User
	namespace string
	name      string
	rule      rbacv1.PolicyRule // the first one
}

// Allow grants rules in the whole cluster. Roles of one user must not overlap: Grant and Revoke wait until they
// have taken effect, which could not be observed otherwise.
func (u *User) Allow(t testing.TB, rules ...rbacv1.PolicyRule) *Role {
	t.Helper()
	return u.AllowIn(t, "", rules...)
}

// AllowIn grants rules in one namespace.
func (u *User) AllowIn(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) *Role {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	r := &Role{user: u, namespace: namespace, name: u.Name + "-" + rand.String(4), rule: rules[0]}
	// A binding in a namespace may also refer to a role of the cluster.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Rules: rules}
	if _, err := u.cluster.kubernetes.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating role of %s: %v", u.Name, err)
	}
	t.Cleanup(func() { r.drop(t) })
	r.Grant(t)
	return r
}

// Grant grants the role to its user, and returns when that has taken effect.
func (r *Role) Grant(t testing.TB) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	meta := metav1.ObjectMeta{Name: r.name, Namespace: r.namespace}
	to := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.user.Name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name}
	rbac := r.user.cluster.kubernetes.RbacV1()
	var err error
	if r.namespace == "" {
		_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: to, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		_, err = rbac.RoleBindings(r.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: to, RoleRef: ref}, metav1.CreateOptions{})
	}
	if err == nil {
		err = r.await(ctx, true)
	}
	if err != nil {
		t.Fatalf("granting role to %s: %v", r.user.Name, err)
	}
}

// Revoke revokes the role, and returns when that has taken effect. Open watches continue, as in every cluster.
func (r *Role) Revoke(t testing.TB) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	err := r.unbind(ctx)
	if err == nil {
		err = r.await(ctx, false)
	}
	if err != nil {
		t.Fatalf("revoking role of %s: %v", r.user.Name, err)
	}
}

// await waits until the first rule is allowed, or is not allowed any more. The API server learns of roles by
// watching them, and does not report when it has.
func (r *Role) await(ctx context.Context, allowed bool) error {
	resource, subresource, _ := strings.Cut(r.rule.Resources[0], "/")
	about := &authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Verb: r.rule.Verbs[0], Group: r.rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(r.rule.ResourceNames) > 0 {
		about.Name = r.rule.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: r.user.Name, ResourceAttributes: about}}
	reviews := r.user.cluster.kubernetes.AuthorizationV1().SubjectAccessReviews()
	err := wait.PollUntilContextCancel(ctx, glance, true, func(ctx context.Context) (bool, error) {
		got, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed == allowed, err
	})
	if err != nil {
		return fmt.Errorf("waiting for access to be %t: %w", allowed, err)
	}
	return nil
}

func (r *Role) unbind(ctx context.Context) error {
	if r.namespace == "" {
		return r.user.cluster.kubernetes.RbacV1().ClusterRoleBindings().Delete(ctx, r.name, metav1.DeleteOptions{})
	}
	return r.user.cluster.kubernetes.RbacV1().RoleBindings(r.namespace).Delete(ctx, r.name, metav1.DeleteOptions{})
}

// drop deletes the objects that are not deleted with the namespace.
func (r *Role) drop(t testing.TB) {
	ctx, cancel := bounded(t)
	defer cancel()
	roles := r.user.cluster.kubernetes.RbacV1().ClusterRoles()
	for _, err := range []error{r.unbind(ctx), roles.Delete(ctx, r.name, metav1.DeleteOptions{})} {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting role of %s: %v", r.user.Name, err)
		}
	}
}
