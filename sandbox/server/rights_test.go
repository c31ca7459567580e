// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// newGuarded returns a server with users, and a way to it for one of them.
func newGuarded(t *testing.T) (admin, ann wire) {
	admin = newWire(t, server.Settings{Controllers: true, Authorize: true})
	user := rbac.User{Name: "ann", Groups: []string{"team", rbac.Authenticated}}
	return admin, wire{t, admin.server, admin.server.As(user)}
}

func (w wire) bind(namespace, role string) {
	w.t.Helper()
	out := w.send(http.MethodPost, rbacPath+"/namespaces/"+namespace+"/rolebindings", fmt.Sprintf(
		`{"metadata":{"name":"ann-%s"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}]}`, role, role))
	if out.code != http.StatusCreated {
		w.t.Fatal(out.text)
	}
}

func TestAUserHasTheRightsOfTheRoles(t *testing.T) {
	admin, ann := newGuarded(t)
	admin.put("default", "a")
	admin.bind("default", "view")
	const at = `in API group "" in the namespace`
	for request, want := range map[string]string{
		"GET " + inDefault:                               "<nil>",
		"GET /api/v1/namespaces/default":                 "<nil>",
		"GET /api/v1/namespaces/kube-system":             `namespaces "kube-system" is forbidden: User "ann" cannot get resource "namespaces" ` + at + ` "kube-system"`,
		"GET /api/v1/configmaps":                         `configmaps is forbidden: User "ann" cannot list resource "configmaps" in API group "" at the cluster scope`,
		"DELETE " + inDefault + "/a":                     `configmaps "a" is forbidden: User "ann" cannot delete resource "configmaps" ` + at + ` "default"`,
		"GET /api/v1/namespaces/default/secrets":         `secrets is forbidden: User "ann" cannot list resource "secrets" ` + at + ` "default"`,
		"GET /api":                                       "<nil>",
		"GET /":                                          `forbidden: User "ann" cannot get path "/"`,
		"PATCH /api/v1/namespaces/default/pods/a/status": `pods "a" is forbidden: User "ann" cannot patch resource "pods/status" ` + at + ` "default"`,
	} {
		var method, path string
		_, _ = fmt.Sscan(request, &method, &path)
		body, headers := "", []string(nil)
		if method == http.MethodPatch {
			body, headers = "{}", []string{"Content-Type", "application/merge-patch+json"}
		}
		out := ann.send(method, path, body, headers...)
		if got := fmt.Sprint(out.json["message"]); got != want {
			t.Errorf("%s: %d\n  got  %s\n  want %s", request, out.code, got, want)
		}
	}
}

func TestAUserGrantsOnlyRightsThatTheUserHas(t *testing.T) {
	admin, ann := newGuarded(t)
	admin.bind("default", "admin")
	role := func(resource string) answer {
		return ann.send(http.MethodPost, rbacPath+"/namespaces/default/roles", fmt.Sprintf(
			`{"metadata":{"name":"r-%s"},"rules":[{"apiGroups":[""],"resources":[%q],"verbs":["get","list"]}]}`, resource, resource))
	}
	if out := role("pods"); out.code != http.StatusCreated {
		t.Errorf("a role with rights of ann's own: %s", out.text)
	}
	want := `roles.rbac.authorization.k8s.io "r-nodes" is forbidden: user "ann" (groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:` +
		"\n" + `{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}`
	if diff := cmp.Diff(want, role("nodes").message()); diff != "" {
		t.Errorf("a role with others (-want +got):\n%s", diff)
	}
	out := ann.send(http.MethodPost, rbacPath+"/namespaces/default/rolebindings", `{"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`)
	if out.code != http.StatusForbidden {
		t.Errorf("a binding to others: %d %s", out.code, out.text)
	}
}

func TestReviewsAnswerByTheRoles(t *testing.T) {
	admin, ann := newGuarded(t)
	admin.bind("default", "view")
	const reviews = "/apis/authorization.k8s.io/v1/"
	asks := `{"spec":{"user":"ann","resourceAttributes":{"namespace":"default","verb":%q,"resource":"pods"}}}`
	for verb, want := range map[string]bool{"list": true, "delete": false} {
		for path, w := range map[string]wire{
			reviews + "selfsubjectaccessreviews": ann, reviews + "subjectaccessreviews": admin,
			reviews + "namespaces/default/localsubjectaccessreviews": admin,
		} {
			out := w.send(http.MethodPost, path, fmt.Sprintf(asks, verb))
			status, _ := out.json["status"].(map[string]any)
			if status["allowed"] != want {
				t.Errorf("%s of %s: %s", path, verb, out.text)
			}
		}
	}
	if out := ann.send(http.MethodPost, reviews+"subjectaccessreviews", fmt.Sprintf(asks, "list")); out.code != http.StatusForbidden {
		t.Errorf("a review of another user: %s", out.text)
	}
	out := ann.send(http.MethodPost, reviews+"selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`)
	if status, _ := out.json["status"].(map[string]any); len(fmt.Sprint(status["resourceRules"])) < 100 || status["incomplete"] != false {
		t.Errorf("the rules: %s", out.text)
	}
}

func TestWhoMayDoSoActsAsAnother(t *testing.T) {
	admin, ann := newGuarded(t)
	const review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	as := []string{"Impersonate-User", "bob", "Impersonate-Group", "team"}
	out := admin.send(http.MethodPost, review, "{}", as...)
	if got := fmt.Sprint(out.json["status"]); got != "map[userInfo:map[groups:[team system:authenticated] username:bob]]" {
		t.Errorf("the admin is %s", got)
	}
	const want = `users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope`
	if got := ann.send(http.MethodPost, review, "{}", as...).message(); got != want {
		t.Errorf("ann is %s", got)
	}
}

func TestATokenEnds(t *testing.T) {
	for name, end := range map[string]func(admin wire){
		"with its time":           func(wire) { time.Sleep(11 * time.Minute) },
		"with its ServiceAccount": func(w wire) { w.send(http.MethodDelete, "/api/v1/namespaces/default/serviceaccounts/default", "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				admin, _ := newGuarded(t)
				made := admin.send(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", `{"spec":{"expirationSeconds":600}}`)
				status, _ := made.json["status"].(map[string]any)
				code := func() int {
					out := httptest.NewRecorder()
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, inDefault, nil)
					r.Header.Set("Authorization", fmt.Sprint("Bearer ", status["token"]))
					admin.server.Guarded().ServeHTTP(out, r)
					return out.Code
				}
				if got := code(); got != http.StatusForbidden {
					t.Errorf("before that: %d", got)
				}
				end(admin)
				if got := code(); got != http.StatusUnauthorized {
					t.Errorf("after that: %d", got)
				}
			})
		})
	}
}

func TestServersBeginAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at one time
		var texts [2]bytes.Buffer
		for i := range texts {
			if err := server.New(complete.Settings()).Save(&texts[i]); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(texts[0].String(), texts[1].String()); diff != "" {
			t.Errorf("a server begins with other objects than another:\n%s", diff)
		}
	})
}
