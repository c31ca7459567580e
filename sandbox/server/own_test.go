// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// TestWritesOfTheServersOwnAreShown holds that each write without a request is shown once, and no other one.
func TestWritesOfTheServersOwnAreShown(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"a deletion in the background":              {"DELETE " + inDefault + "/owner", "child gone, grandchild gone"},
		"a deletion in the foreground":              {"DELETE " + inDefault + "/owner?propagationPolicy=Foreground", "child marked foregroundDeletion, grandchild gone, child gone, owner gone"},
		"a deletion that orphans":                   {"DELETE " + inDefault + "/owner?propagationPolicy=Orphan", "child changed, owner gone"},
		"a request that deletes all by itself":      {"DELETE " + inDefault, ""},
		"the end of a namespace with what is in it": {"DELETE /api/v1/namespaces/default", "child gone, default gone, grandchild gone, kube-root-ca.crt gone, owner gone, default gone"},
		"a dry run": {"DELETE " + inDefault + "/owner?dryRun=All", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				shows := func(w server.OwnWrite) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, w.Name+" "+ownWords(w))
				}
				f := family{newWire(t, server.Settings{Controllers: true, OwnWrites: shows}), map[string]string{}}
				f.add("owner")
				f.add("child", "owner!")
				f.add("grandchild", "child!")
				verb, path, _ := strings.Cut(c.request, " ")
				if out := f.send(verb, path, ""); out.code != http.StatusOK {
					t.Fatalf("%s: %s", c.request, out.text)
				}
				f.left()
				synctest.Wait() // the last write may come at the same instant
				mu.Lock()
				defer mu.Unlock()
				if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
					t.Errorf("own writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func ownWords(w server.OwnWrite) string {
	before, after := &unstructured.Unstructured{Object: w.Before}, &unstructured.Unstructured{Object: w.After}
	switch {
	case w.Before == nil:
		return "made"
	case w.After == nil:
		return "gone"
	case before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil:
		return "marked " + strings.Join(after.GetFinalizers(), " ")
	}
	return "changed"
}
