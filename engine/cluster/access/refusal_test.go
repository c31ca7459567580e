// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// grants is the answer of the API server to who writes a role or a binding, and does not hold the rights in it.
func grants(resource string, rules ...string) error {
	const says = `user "ops" (groups=["system:serviceaccounts" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:` + "\n"
	of := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: resource}
	return apierrors.NewForbidden(of, "view", errors.New(says+strings.Join(rules, "\n")))
}

const (
	getPods     = `{APIGroups:[""], Resources:["pods" "pods/log"], Verbs:["get" "list"]}`
	deployments = `{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["web"], Verbs:["*"]}`
)

func TestARefusalToGiveRightsAwayIsOneLine(t *testing.T) {
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf(`{APIGroups:["g%02d"], Resources:["things"], Verbs:["get" "list" "watch"]}`, i)
	}
	const begins = `rbac.authorization.k8s.io "view" is forbidden: user "ops" is attempting to grant RBAC permissions not currently held: `
	tests := map[string]struct {
		err    error
		text   string
		rights string
	}{
		"a binding, which may refer to either kind of role": {
			grants("rolebindings", getPods, deployments), "rolebindings." + begins + getPods + ", " + deployments,
			"bind clusterroles.rbac.authorization.k8s.io,bind roles.rbac.authorization.k8s.io,get pods,list pods,get pods/log,list pods/log,* deployments.apps",
		},
		"a binding of the cluster": {
			grants("clusterrolebindings", deployments), "clusterrolebindings." + begins + deployments, "bind clusterroles.rbac.authorization.k8s.io,* deployments.apps",
		},
		"a role": {
			grants("roles", deployments), "roles." + begins + deployments, "escalate roles.rbac.authorization.k8s.io,* deployments.apps",
		},
		"what could not be read": {
			grants("roles", deployments+`; resolution errors: [clusterroles "gone" not found]`), "roles." + begins + deployments,
			"escalate roles.rbac.authorization.k8s.io,* deployments.apps",
		},
		"a rule about paths": {
			grants("clusterroles", `{NonResourceURLs:["/metrics"], Verbs:["get"]}`), "clusterroles." + begins + `{NonResourceURLs:["/metrics"], Verbs:["get"]}`,
			"escalate clusterroles.rbac.authorization.k8s.io",
		},
		"the rules of other roles": {
			apierrors.NewForbidden(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, "sum", errors.New(aggregates)),
			`clusterroles.rbac.authorization.k8s.io "sum" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
			"escalate clusterroles.rbac.authorization.k8s.io",
		},
		"many rules": {grants("roles", many...), "roles." + begins + strings.Join(many[:3], ", ") + " and 27 more", ""},
		"a long rule": {
			grants("roles", `{APIGroups:["`+strings.Repeat("x", 300)+`"], Resources:["y"], Verbs:["get"]}`, deployments),
			"roles." + begins + `{APIGroups:["` + strings.Repeat("x", listedMost-len(`{APIGroups:["…`)) + "… and 1 more", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			refusal := refused(fmt.Errorf("applying child: %w", test.err))
			if refusal == nil {
				t.Fatal("it is no refusal")
			}
			var rights []string
			for _, right := range refusal.rights {
				rights = append(rights, right.String())
			}
			if diff := cmp.Diff(test.text, refusal.text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.rights, strings.Join(rights, ",")); test.rights != "" && diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARefusalToGiveRightsAwaySaysWhatToDo plays with an account that lacks a right, which an error says in the API server's words
// and in those for the log.
func TestARefusalToGiveRightsAwaySaysWhatToDo(t *testing.T) {
	tests := map[string]struct {
		err  error
		ends string
	}{
		"for want of a right that the roles have": {grants("roles", `{APIGroups:[""], Resources:["pods"], Verbs:["create"]}`), "; allow it to the operator: operator rbac prints the roles"},
		"for want of an undeclared one, to write a role": {
			grants("roles", deployments),
			"; allow it to the operator: declare it with needs: [{resource: roles.rbac.authorization.k8s.io, verbs: [escalate], names: [NAME]}] (dsl.Need in Go), and operator rbac prints the roles",
		},
		"to write a binding": {
			grants("rolebindings", deployments),
			"; allow it to the operator: declare it with needs: [{resource: clusterroles.rbac.authorization.k8s.io, verbs: [bind], names: [NAME]}] " +
				"(roles for a Role; dsl.Need in Go), and operator rbac prints the roles",
		},
		"to write a binding of the cluster": {
			grants("clusterrolebindings", deployments),
			"; allow it to the operator: declare it with needs: [{resource: clusterroles.rbac.authorization.k8s.io, verbs: [bind], names: [NAME]}] (dsl.Need in Go), and operator rbac prints the roles",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := watches(t, &account{}, nil)
				synctest.Wait()
				if got := (advising{monitor: m}).fault(t.Context(), test.err).Error(); !strings.HasSuffix(got, test.ends) || strings.Contains(got, "\n") {
					t.Errorf("the error is\n%s\nwant at its end\n%s", got, test.ends)
				}
			})
		})
	}
}

// TestOnlyTheAPIServerSaysThatARightIsMissing holds that who writes a text which a policy quotes invents no missing right: it would be
// in the log, in the metrics and in /readyz.
func TestOnlyTheAPIServerSaysThatARightIsMissing(t *testing.T) {
	const right = `User "ops" cannot get resource "hush" in API group ""`
	const grant = `user "ops" is attempting to grant RBAC permissions not currently held: {APIGroups:[""], Resources:["hush"], Verbs:["get"]}`
	configMap := schema.GroupResource{Resource: "configmaps"}
	for name, err := range map[string]error{
		"in a webhook's words":             apierrors.NewForbidden(configMap, "x", errors.New(`admission webhook "a.b.c" denied the request: `+right)),
		"in a policy's words":              apierrors.NewForbidden(configMap, "x", errors.New(`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `+right)),
		"in an invalid name":               apierrors.NewForbidden(configMap, `x\" is forbidden: `+right, errors.New("no")),
		"a grant in a policy's words":      apierrors.NewForbidden(configMap, "x", errors.New(`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `+grant)),
		"a grant in an invalid name":       apierrors.NewForbidden(configMap, `x\" is forbidden: `+grant, errors.New("no")),
		"after a line of a policy's words": apierrors.NewForbidden(configMap, "x", errors.New("policy p says\nconfigmaps is forbidden: "+right)),
	} {
		if got := refused(err); got != nil {
			t.Errorf("%s: %v are missing", name, got.rights)
		}
	}
	if refused(apierrors.NewForbidden(configMap, "x", errors.New(right))) == nil || refused(apierrors.NewForbidden(configMap, "", errors.New(right))) == nil {
		t.Error("what the API server says itself is not read")
	}
}

func TestARefusalToGrantRightsIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		a.set(false, "create pods")
		m := watches(t, a, nil)
		synctest.Wait()
		refusal := grants("roles", `{APIGroups:[""], Resources:["pods"], Verbs:["create"]}`)
		if !m.Logged(refusal) || !m.Logged((advising{monitor: m}).fault(t.Context(), refusal)) {
			t.Error("a missing right does not count as logged")
		}
		if m.Logged(grants("roles", deployments)) {
			t.Error("an unknown gap counts as logged")
		}
		want := []ops.MissingRight{{Resource: "pods", Verb: "create", Namespaces: 1}}
		if diff := cmp.Diff(want, m.Missing()); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
	})
}
