// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// family is a server that collects garbage, and the uids of its objects by name.
type family struct {
	wire
	uids map[string]string
}

func newFamily(t *testing.T) family {
	return family{newWire(t, server.Settings{Controllers: true}), map[string]string{}}
}

// add creates a ConfigMap that is owned by others. A name with an exclamation mark blocks the owner's deletion.
func (f family) add(name string, owners ...string) {
	f.t.Helper()
	f.post(inDefault, name, owners...)
}

func (f family) post(path, name string, owners ...string) {
	f.t.Helper()
	var refs []string
	for _, owner := range owners {
		owner, blocks := strings.CutSuffix(owner, "!")
		refs = append(refs, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"blockOwnerDeletion":%t}`, owner, f.uids[owner], blocks))
	}
	out := f.send(http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":%q,"ownerReferences":[%s]}}`, name, strings.Join(refs, ",")))
	if out.code != http.StatusCreated {
		f.t.Fatalf("creating %s: %s", name, out.text)
	}
	f.uids[name] = out.meta("uid")
}

// left are the ConfigMaps that there are after a while, but those of the server's own.
func (f family) left() string {
	f.t.Helper()
	time.Sleep(time.Second)
	var out []string
	for _, name := range f.send(http.MethodGet, "/api/v1/configmaps", "").names() {
		if name != "kube-root-ca.crt" {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

func TestDependentsAreCollected(t *testing.T) {
	const one = "DELETE " + inDefault + "/owner"
	for name, c := range map[string]struct {
		make    func(f family)
		request string
		want    string
	}{
		"in the background, and theirs": {nil, one, "other"},
		"in the foreground":             {nil, one + "?propagationPolicy=Foreground", "other"},
		"not those that are orphaned":   {nil, one + "?propagationPolicy=Orphan", "child grandchild other"},
		"not those with another owner": {func(f family) {
			f.add("shared", "owner", "other")
		}, one, "other shared"},
		"after an owner that was made again": {func(f family) {
			f.send(http.MethodDelete, inDefault+"/owner", "")
			f.send(http.MethodPost, inDefault, `{"metadata":{"name":"owner"}}`)
		}, "GET " + inDefault, "other owner"},
		"whose owner has never been": {func(f family) {
			f.uids["ghost"] = "1"
			f.add("stray", "ghost")
		}, "GET " + inDefault, "child grandchild other owner"},
		"whose owner is in another namespace": {func(f family) {
			f.post("/api/v1/namespaces/kube-system/configmaps", "far", "owner")
		}, "GET " + inDefault, "child grandchild other owner"},
		"in a circle": {func(f family) {
			f.send(http.MethodPatch, inDefault+"/owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"grandchild","uid":"`+f.uids["grandchild"]+`","blockOwnerDeletion":true}]}}`, "Content-Type", "application/merge-patch+json")
		}, one + "?propagationPolicy=Foreground", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFamily(t)
				f.add("other")
				f.add("owner")
				f.add("child", "owner!")
				f.add("grandchild", "child!")
				if c.make != nil {
					c.make(f)
				}
				method, path, _ := strings.Cut(c.request, " ")
				if out := f.send(method, path, ""); out.code != http.StatusOK {
					t.Fatal(out.text)
				}
				if diff := cmp.Diff(c.want, f.left()); diff != "" {
					t.Errorf("what is left (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestARefusedDryRunLeavesTheCollectorAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t)
		f.add("other")
		f.add("owner")
		f.add("child", "owner")
		f.send(http.MethodDelete, inDefault+"/owner", "")
		if out := f.send(http.MethodDelete, inDefault+"/other", `{"dryRun":["Some"]}`); out.code != http.StatusUnprocessableEntity {
			t.Fatal(out.code, out.text)
		}
		if diff := cmp.Diff("other", f.left()); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
	})
}

func TestAnOwnerWaitsForThoseThatBlockIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t)
		f.add("owner")
		f.add("blocks", "owner!")
		f.add("not", "owner")
		for _, name := range []string{"blocks", "not"} {
			f.send(http.MethodPatch, inDefault+"/"+name, `{"metadata":{"finalizers":["example.com/f"]}}`, "Content-Type", "application/merge-patch+json")
		}
		out := f.send(http.MethodDelete, inDefault+"/owner?propagationPolicy=Foreground", "")
		if got := out.meta("finalizers"); got != "[foregroundDeletion]" {
			t.Errorf("the finalizers are %s", got)
		}
		if got := f.left(); got != "blocks not owner" {
			t.Errorf("while it is blocked there are %s", got)
		}
		f.send(http.MethodPatch, inDefault+"/blocks", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		if got := f.left(); got != "not" {
			t.Errorf("after that there are %s", got)
		}
	})
}

func TestADeletedJobLeavesItsPodsByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t)
		const jobs = "/apis/batch/v1/namespaces/default/jobs"
		f.send(http.MethodPost, jobs, `{"metadata":{"name":"a"}}`)
		if got := f.send(http.MethodDelete, jobs+"/a", "").meta("finalizers"); got != "[orphan]" {
			t.Errorf("the finalizers are %s", got)
		}
		time.Sleep(time.Second)
		if out := f.send(http.MethodGet, jobs+"/a", ""); out.code != http.StatusNotFound {
			t.Errorf("the job stays: %s", out.text)
		}
	})
}

func TestTenThousandDependentsAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t)
		f.add("owner")
		for i := range 10_000 {
			f.add(fmt.Sprint("c", i), "owner")
		}
		f.send(http.MethodDelete, inDefault+"/owner", "")
		time.Sleep(10 * time.Second)
		if got := f.left(); got != "" {
			t.Errorf("there are %d left", len(strings.Fields(got)))
		}
	})
}
