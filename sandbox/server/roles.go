// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usualRoles are the cluster roles that users bind to, one rule a line: the role, the verbs, the groups with a slash
// after each, the resources, each with commas. A rule of paths has a dash for its groups.
const usualRoles = `
	cluster-admin * */ *
	cluster-admin * - *
	system:discovery get - /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/
	system:public-info-viewer get - /healthz,/livez,/readyz,/version,/version/
	system:basic-user create authorization.k8s.io/ selfsubjectaccessreviews,selfsubjectrulesreviews
	system:basic-user create authentication.k8s.io/ selfsubjectreviews
	view get,list,watch / configmaps,endpoints,events,limitranges,namespaces,persistentvolumeclaims,persistentvolumeclaims/status,pods,pods/log,pods/status,replicationcontrollers,replicationcontrollers/scale,resourcequotas,serviceaccounts,services,services/status
	view get,list,watch apps/ daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status
	view get,list,watch autoscaling/ horizontalpodautoscalers,horizontalpodautoscalers/status
	view get,list,watch batch/ cronjobs,cronjobs/status,jobs,jobs/status
	view get,list,watch networking.k8s.io/ ingresses,ingresses/status,networkpolicies
	view get,list,watch policy/ poddisruptionbudgets,poddisruptionbudgets/status
	edit get,list,watch / pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
	edit impersonate / serviceaccounts
	edit create,delete,deletecollection,patch,update / configmaps,events,persistentvolumeclaims,pods,pods/attach,pods/exec,pods/portforward,pods/proxy,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy
	edit create / pods/eviction,serviceaccounts/token
	edit create,delete,deletecollection,patch,update apps/ daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale
	edit create,delete,deletecollection,patch,update autoscaling/ horizontalpodautoscalers
	edit create,delete,deletecollection,patch,update batch/ cronjobs,jobs
	edit create,delete,deletecollection,patch,update networking.k8s.io/ ingresses,networkpolicies
	edit create,delete,deletecollection,patch,update policy/ poddisruptionbudgets
	edit create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io/ leases
	admin create authorization.k8s.io/ localsubjectaccessreviews
	admin create,delete,deletecollection,get,list,patch,update,watch rbac.authorization.k8s.io/ rolebindings,roles`

// aggregating are the cluster roles that are sums, by the name, with the one that they are part of.
var aggregating = map[string]string{"view": "edit", "edit": "admin", "admin": ""}

// bootstrap stores the usual cluster roles and the bindings of the groups.
func (s *Server) bootstrap() {
	rules := map[string][]any{}
	for row := range strings.Lines(strings.TrimSpace(usualRoles)) {
		c := strings.Fields(row)
		rule := map[string]any{"verbs": texts(c[1])}
		if c[2] == "-" {
			rule["nonResourceURLs"] = texts(c[3])
		} else {
			rule["apiGroups"], rule["resources"] = []any{strings.TrimSuffix(c[2], "/")}, texts(c[3])
		}
		rules[c[0]] = append(rules[c[0]], rule)
	}
	roles := clusterRoles()
	if s.garbage != nil {
		s.garbage.sums = true
		defer func() {
			s.aggregate()
			s.garbage.sums = false
		}()
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		list := rules[name]
		above, sums := aggregating[name]
		if !sums {
			s.add(roles, "", name, map[string]any{"rules": list})
			continue
		}
		s.add(roles, "", "system:aggregate-to-"+name, map[string]any{"rules": list, "metadata": labeled(name)})
		object := map[string]any{"metadata": map[string]any{}, "aggregationRule": map[string]any{"clusterRoleSelectors": []any{
			map[string]any{"matchLabels": labeled(name)["labels"]},
		}}}
		if above != "" {
			object["metadata"] = labeled(above)
		}
		s.add(roles, "", name, object)
	}
	for _, role := range []string{"cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer"} {
		group := rbac.Authenticated
		if role == "cluster-admin" {
			group = rbac.Masters
		}
		s.add(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}, "", role, map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Group", "name": group}},
		})
	}
}

// labeled is the metadata of a role that is part of another.
func labeled(role string) map[string]any {
	return map[string]any{"labels": map[string]any{"rbac.authorization.k8s.io/aggregate-to-" + role: "true"}}
}

func texts(list string) []any {
	var out []any
	for text := range strings.SplitSeq(list, ",") {
		out = append(out, text)
	}
	return out
}
