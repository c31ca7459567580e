// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestADeletionAnswersAsARealServerDoes(t *testing.T) {
	w := newFoos(t)
	status := func(kind, group string) string {
		return "Status Success map[group:" + group + " kind:" + kind + " name:a uid:*]"
	}
	w.send(http.MethodPost, inDefault, `{"metadata":{"name":"held","finalizers":["example.com/f"]}}`)
	w.send(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"a"}}`)
	for _, c := range []struct{ path, want string }{
		{inDefault + "/a?dryRun=All", "Status Success map[kind:configmaps name:a uid:*]"},
		{inDefault + "/a", "Status Success map[kind:configmaps name:a uid:*]"},
		{foos + "/a?propagationPolicy=Background", status("foos", "example.com")},
		{inDefault + "/held", "ConfigMap <nil> <nil>"},
		{"/api/v1/namespaces/default/serviceaccounts/a", "ServiceAccount <nil> <nil>"},
	} {
		out := w.send(http.MethodDelete, c.path, "")
		if details, ok := out.json["details"].(map[string]any); ok && details["uid"] != "" {
			details["uid"] = "*"
		}
		if got := fmt.Sprint(out.json["kind"], " ", out.json["status"], " ", out.json["details"]); got != c.want || out.code != http.StatusOK {
			t.Errorf("%s: %d\n  got  %s\n  want %s", c.path, out.code, got, c.want)
		}
	}
}

func TestDeletionsThatTheServerRefuses(t *testing.T) {
	w := newFoos(t)
	one, foo := "DELETE "+inDefault+"/a", "DELETE "+foos+"/a"
	w.refuses(map[string]refusal{
		"an unknown object":           {"DELETE " + inDefault + "/zzz", ``, "", `404 configmaps "zzz" not found`},
		"an unknown dry run":          {one + "?dryRun=x", ``, "", `422 DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`},
		"an unknown policy":           {one + "?propagationPolicy=Bad", ``, "", `422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Bad": supported values: "Foreground", "Background", "Orphan", "nil"`},
		"two policies":                {one + "?propagationPolicy=Orphan&orphanDependents=true", ``, "", `422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set`},
		"a grace that is no number":   {one + "?gracePeriodSeconds=x", ``, "", `400 strconv.ParseInt: parsing "x": invalid syntax`},
		"another kind":                {one, `{"apiVersion":"v1","kind":"Pod"}`, "", `400 no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		"no JSON":                     {one, `{bad`, "", `400 couldn't get version/kind; json parse error: invalid character 'b' looking for beginning of object key string`},
		"another uid":                 {one, `{"preconditions":{"uid":"1"}}`, "", `409 Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (1) does not match the UID in record (00000000-0000-4000-8000-000000000003). The object might have been deleted and then recreated`},
		"another version":             {one, `{"preconditions":{"resourceVersion":"1"}}`, "", `409 Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (3). The object might have been modified`},
		"another version of a custom": {foo, `{"preconditions":{"resourceVersion":"1"}}`, "", `409 Operation cannot be fulfilled on Foo.example.com "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (6). The object might have been modified`},
	})
}

func TestADeletionOfManyObeysItsOptions(t *testing.T) {
	w := newFoos(t)
	w.put("default", "b", "x")
	w.put("kube-system", "c", "x")
	rest := func() []string { return w.send(http.MethodGet, "/api/v1/configmaps", "").names() }
	out := w.send(http.MethodDelete, inDefault+"?labelSelector=part%3Dx&dryRun=All", "")
	if diff := cmp.Diff([]string{"a", "b", "c"}, rest()); diff != "" || out.json["kind"] != "ConfigMapList" {
		t.Errorf("after a dry run with %v (-want +got):\n%s", out.json["kind"], diff)
	}
	out = w.send(http.MethodDelete, inDefault+"?labelSelector=part%3Dx", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"1"}}`)
	if out.code != http.StatusConflict {
		t.Errorf("a precondition that is not met: %d %s", out.code, out.text)
	}
	out = w.send(http.MethodDelete, inDefault+"?labelSelector=part%3Dx", "")
	if diff := cmp.Diff([]string{"a", "c"}, rest()); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b"}, out.names()); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	w := newFoos(t)
	before := w.send(http.MethodGet, foos, "").text + w.send(http.MethodGet, inDefault, "").text
	version := w.send(http.MethodGet, foos+"/a", "").meta("resourceVersion")
	for name, c := range map[string]struct{ method, path, body, kind, version string }{
		"create":       {http.MethodPost, foos, `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"b"}}`, "", ""},
		"update":       {http.MethodPut, foos + "/a", `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a","resourceVersion":"` + version + `"},"spec":{"x":7}}`, "", version},
		"merge patch":  {http.MethodPatch, foos + "/a", `{"spec":{"x":7}}`, string(types.MergePatchType), version},
		"apply":        {http.MethodPatch, foos + "/a", `{"apiVersion":"example.com/v1","kind":"Foo","spec":{"y":7}}`, string(types.ApplyPatchType), version},
		"apply of new": {http.MethodPatch, foos + "/b", `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"b"}}`, string(types.ApplyPatchType), ""},
		"a CRD":        {http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"kind":"CustomResourceDefinition","metadata":{"name":"bars.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"bars","kind":"Bar"},"versions":[{"name":"v1","served":true}]}}`, "", ""},
	} {
		kind := c.kind
		if kind == "" {
			kind = "application/json"
		}
		out := w.send(c.method, c.path+"?dryRun=All&fieldManager=me", c.body, "Content-Type", kind)
		if out.code >= http.StatusBadRequest || out.meta("uid") == "" || out.meta("resourceVersion") != c.version {
			t.Errorf("%s: %d %s", name, out.code, out.text)
		}
	}
	if diff := cmp.Diff(before, w.send(http.MethodGet, foos, "").text+w.send(http.MethodGet, inDefault, "").text); diff != "" {
		t.Errorf("something was stored (-before +after):\n%s", diff)
	}
	if out := w.send(http.MethodGet, "/apis/example.com/v1/bars", ""); out.code != http.StatusNotFound {
		t.Errorf("a CRD that was not stored is served: %d %s", out.code, out.text)
	}
}
