// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"
)

// Risk is something dangerous that an account can do, by one right or several.
type Risk struct {
	// Can is a verb and its object, as in "read Secrets".
	Can string
	// Names are the objects' names, sorted. Empty means all objects.
	Names []string
	// Namespaces are those of the objects, sorted. Empty means the whole cluster.
	Namespaces []string
	// For are the handlers that need it, sorted. If none does, it has the engine's purposes.
	For []string
	// Usual: most operators have it.
	Usual bool
	// engine are the purposes of the engine.
	engine []string
	// namespaced: the objects lie in namespaces.
	namespaced bool
}

// riskyRight is a row of the table of risks. A rule matches if it allows one of the verbs on one of the targets. An empty
// list of verbs matches all.
type riskyRight struct {
	can            string
	targets, verbs []string
	usual          bool
}

// everything is the target of a rule for all resources of all groups.
const everything = "*.*"

// riskyRights are the rights that Kubernetes names as risks of privilege escalation, and those that destroy most, the
// widest first. See https://kubernetes.io/docs/concepts/security/rbac-good-practices/.
func riskyRights() []riskyRight {
	const (
		roles, clusterRoles = "roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"
		admission           = ".admissionregistration.k8s.io"
	)
	write := []string{"create", "update", "patch"}
	return []riskyRight{
		{can: "do what it wants with every resource", targets: []string{everything}, verbs: []string{"*"}},
		{can: "act as other users", targets: []string{"users", "groups", "serviceaccounts"}, verbs: []string{"impersonate"}},
		{can: "write roles with rights that it does not have", targets: []string{roles, clusterRoles}, verbs: []string{"escalate"}},
		{can: "bind roles whose rights it does not have", targets: []string{roles, clusterRoles}, verbs: []string{"bind"}},
		{can: "write ClusterRoles", targets: []string{clusterRoles}, verbs: write},
		{can: "write Roles", targets: []string{roles}, verbs: write},
		{can: "make tokens of service accounts", targets: []string{"serviceaccounts/token"}, verbs: []string{"create"}},
		{can: "run commands in Pods", targets: []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers"}},
		{can: "reach kubelets", targets: []string{"nodes/proxy"}},
		{can: "read Secrets", targets: []string{"secrets"}, verbs: []string{"get", "list", "watch"}},
		{can: "delete Namespaces", targets: []string{"namespaces"}, verbs: []string{"delete", "deletecollection"}},
		{can: "change what the API server admits", targets: []string{
			"mutatingwebhookconfigurations" + admission, "validatingwebhookconfigurations" + admission,
			"mutatingadmissionpolicies" + admission, "validatingadmissionpolicies" + admission,
			"mutatingadmissionpolicybindings" + admission, "validatingadmissionpolicybindings" + admission,
		}, verbs: append(write, "delete")},
		{can: "change Namespaces, whose labels choose policies", targets: []string{"namespaces"}, verbs: []string{"update", "patch"}},
		{can: "make PersistentVolumes, which can mount files of nodes", targets: []string{"persistentvolumes"}, verbs: []string{"create"}},
		{can: "approve certificates", targets: []string{"certificatesigningrequests.certificates.k8s.io/approval"}},
		{can: "make Pods, and so use Secrets and service accounts", targets: []string{
			"pods", "replicationcontrollers", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps",
			"jobs.batch", "cronjobs.batch",
		}, verbs: write, usual: true},
	}
}

// Risks returns the dangerous things that rules allow, the widest first. A right on single objects is a risk of its own.
func Risks(rules []Rule) (out []Risk) {
	for _, row := range riskyRights() {
		var all, named Risk
		all.Can, named.Can = row.can, row.can
		all.Usual, named.Usual = row.usual, row.usual
		for _, r := range rules {
			switch {
			case !row.matches(r):
			case r.Name == "":
				all.add(r)
			default:
				named.add(r)
			}
		}
		for _, risk := range []Risk{all, named} {
			if len(risk.For)+len(risk.engine) > 0 {
				out = append(out, risk.sorted())
			}
		}
	}
	return out
}

func (row riskyRight) matches(r Rule) bool {
	if r.Target() == everything && r.Verb == "*" {
		return slices.Contains(row.targets, everything) // the other rows would say the same again
	}
	verb := len(row.verbs) == 0 || r.Verb == "*" || slices.Contains(row.verbs, r.Verb)
	return verb && slices.ContainsFunc(row.targets, r.covers)
}

// covers reports whether a rule is for a target. Stars match as in RBAC: the resource "*" has all subresources.
func (r Rule) covers(target string) bool {
	if target == everything {
		return r.Target() == everything
	}
	name, subresource, _ := strings.Cut(target, "/")
	resource, group, _ := strings.Cut(name, ".")
	if r.Group != "*" && r.Group != group {
		return false
	}
	if r.Resource == "*" && (r.Subresource == "" || r.Subresource == subresource) {
		return true
	}
	return r.Resource == resource && (r.Subresource == subresource || subresource != "" && r.Subresource == "*")
}

// add adds the right of a rule.
func (k *Risk) add(r Rule) {
	k.Namespaces, k.namespaced = append(k.Namespaces, r.Namespace), r.Namespaced
	if r.Name != "" {
		k.Names = append(k.Names, r.Name)
	}
	for _, reason := range r.Reasons {
		if reason.Who == Engine {
			k.engine = append(k.engine, reason.String())
		} else {
			k.For = append(k.For, reason.Who)
		}
	}
}

func (k Risk) sorted() Risk {
	if len(k.For) == 0 {
		k.For = k.engine
	}
	for _, list := range []*[]string{&k.Names, &k.Namespaces, &k.For} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if slices.Contains(k.Namespaces, "") {
		k.Namespaces = nil
	}
	return k
}

// String returns the risk as a line, as in "read Secrets ca in namespace infra (handler foos/copy)".
func (k Risk) String() string {
	var out strings.Builder
	out.WriteString(k.Can)
	if len(k.Names) > 0 {
		out.WriteString(": " + some(k.Names))
	}
	switch len(k.Namespaces) {
	case 0:
		if k.namespaced {
			out.WriteString(" in all namespaces")
		}
	case 1:
		out.WriteString(" in namespace " + k.Namespaces[0])
	default:
		out.WriteString(" in namespaces " + some(k.Namespaces))
	}
	return out.String() + " (" + some(k.For) + ")"
}

// some returns the first of a list, with how many more there are.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
