// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// farewells says goodbye to each object that is deleted.
const farewells = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: limited}
scope: {namespaces: [NAMESPACE]}
settings: {limits: {deletions: {perMinute: 15, share: 50%}}}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - {id: farewell, causes: [delete], log: {message: "goodbye ${self.metadata.name}"}}
`

// TestALimitHoldsDeletions runs an operator with exactly the rights that it is said to need, while all its objects are
// deleted at once. Its leader is replaced in the middle, and at the end a person types operator release.
func TestALimitHoldsDeletions(t *testing.T) {
	t.Parallel()
	const objects = 50
	ns := plane.Namespace(t)
	text := strings.ReplaceAll(farewells, "NAMESPACE", ns)
	user := plane.User("limited")
	start := func() (*cluster.Running, *cluster.Proxy) {
		op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		proxy := cluster.NewProxy(t, user.Config())
		return cluster.Run(t, op, engine.Settings{Config: proxy.Config(), Namespace: ns}), proxy
	}
	op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	allow(t, user, rbac.Of(op, rbac.Settings{Namespace: ns}))
	all := plane.Objects(works, ns)
	for i := range objects {
		all.Create(t, work(fmt.Sprint("w-", i), "a"))
	}
	running, proxy := start()
	held := func(o *unstructured.Unstructured) bool { return len(o.GetFinalizers()) > 0 }
	for i := range objects {
		all.Await(t, fmt.Sprint("w-", i), "to have the finalizer", held)
	}
	mark := plane.Mark(t)
	for i := range objects {
		all.Delete(t, fmt.Sprint("w-", i))
	}
	running.Await(t, "deletions are held: operator release lets them go")
	records := plane.Objects("configmaps.v1", ns)
	records.Await(t, "limited-deletions", "to say what waits", func(o *unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(field(o, "data", "waiting")), `"cause":"deletion"`)
	})
	running.Stop(t)
	second, again := start()
	second.Await(t, "deletions are held: operator release lets them go")

	gone := func() (times []time.Time) {
		for _, w := range plane.Writes(t, user.Name, mark) {
			if w.Resource == "works" && w.Subresource == "" && w.Verb == "patch" {
				times = append(times, w.At)
			}
		}
		return times
	}
	times := gone()
	slices.SortFunc(times, time.Time.Compare)
	for i := 15; i < len(times); i++ {
		if times[i].Sub(times[i-15]) < time.Minute {
			t.Errorf("16 objects were let go within %s", times[i].Sub(times[i-15]))
		}
	}
	if len(times) == 0 || len(times) > objects/2 {
		t.Errorf("%d of %d objects were let go", len(times), objects)
	}
	if printed := mustRun(t, "release", "works", "--operator=limited", "--operator-namespace="+ns); !strings.Contains(printed, "released until ") {
		t.Errorf("release says %q", printed)
	}
	for i := range objects {
		all.AwaitGone(t, fmt.Sprint("w-", i))
	}
	if n := len(running.With("goodbye ")) + len(second.With("goodbye ")); n != objects {
		t.Errorf("%d farewells to %d objects", n, objects)
	}
	for _, p := range []*cluster.Proxy{proxy, again} {
		for _, r := range p.Requests(cluster.On("*", "*")) {
			if r.Code == http.StatusForbidden {
				t.Errorf("refused: %s %s", r.Verb, r.URI)
			}
		}
	}
}
