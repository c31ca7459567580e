// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// bootstrap stores the roles and the bindings that each cluster has. They come from a file that was checked, so they are stored
// as they are: a server is ready sooner than if it had to create each.
func (s *Server) bootstrap() {
	if s.garbage != nil {
		s.garbage.sums = true
		defer func() {
			s.aggregate()
			s.garbage.sums = false
		}()
	}
	for _, u := range usualRoles() {
		t := s.tables[schema.GroupResource{Group: rbacv1.GroupName, Resource: u.resource}]
		if namespace := u.tree.GetNamespace(); namespace != "" && s.tables[namespaces()].get(types.NamespacedName{Name: namespace}) == nil {
			continue
		}
		o := &unstructured.Unstructured{Object: maps.Clone(u.tree.Object)}
		metadata := maps.Clone(o.Object["metadata"].(map[string]any))
		metadata["uid"], metadata["creationTimestamp"] = string(s.uid()), s.now()
		metadata["managedFields"] = []any{managedByServer(o, metadata, s.now())}
		o.Object["metadata"] = metadata
		s.commit(t, store.Added, o)
		s.roles[t.objects.Get(o.GetNamespace(), o.GetName())] = u.typed
	}
}

// managedByServer returns the managed fields of a role or a binding that the API server has made.
func managedByServer(o *unstructured.Unstructured, metadata map[string]any, now string) map[string]any {
	marks := map[string]any{}
	for _, key := range []string{"annotations", "labels"} {
		fields := map[string]any{".": map[string]any{}}
		texts, _ := metadata[key].(map[string]any)
		for name := range texts {
			fields["f:"+name] = map[string]any{}
		}
		marks["f:"+key] = fields
	}
	fields := map[string]any{"f:metadata": marks}
	for _, key := range []string{"roleRef", "rules", "subjects"} {
		if o.Object[key] != nil {
			fields["f:"+key] = map[string]any{}
		}
	}
	if o.Object["aggregationRule"] != nil {
		fields["f:aggregationRule"] = map[string]any{".": map[string]any{}, "f:clusterRoleSelectors": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "fieldsType": "FieldsV1", "fieldsV1": fields, "manager": apiServer,
		"operation": "Update", "time": now,
	}
}

// decodedRoles returns the objects of a resource of RBAC. One that cannot be decoded gives no right. Objects that were decoded
// before are taken from known, and all are added to next.
func decodedRoles[T any](s *Server, resource string, known, next map[*store.Row]any) []T {
	var out []T
	for _, row := range s.tables[schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}].objects.In("") {
		o, found := known[row].(T)
		if !found && fromTree(row.Tree(), &o) != nil {
			continue
		}
		next[row] = o
		out = append(out, o)
	}
	return slices.Clip(out)
}
