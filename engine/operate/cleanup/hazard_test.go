// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAStrangersObjectOfThatName holds that an object is not the operator's because of its name alone.
func TestAStrangersObjectOfThatName(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		c.Create(`{apiVersion: v1, kind: Secret, metadata: {name: op-key, namespace: system}, data: {tls.key: c2VjcmV0}}`)
		for _, resource := range []string{configMaps, "leases.v1.coordination.k8s.io"} {
			for _, o := range c.List(resource, system) {
				c.Delete(resource, system, o.GetName())
			}
		}
		c.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: system}, data: {a: b}}`)
		c.Create(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: op-leader, namespace: system}, spec: {holderIdentity: ""}}`)
		found := clean.Look(ctx)
		if failed := clean.Remove(ctx, found, nil); len(failed) > 0 || len(found.Own) > 0 {
			t.Errorf("found %v, failed %v", names(found.Own), failed)
		}
		for resource, name := range map[string]string{"secrets.v1": "op-key", configMaps: "op-children", "leases.v1.coordination.k8s.io": "op-leader"} {
			if c.Get(resource, system, name) == nil {
				t.Errorf("%s %s of a stranger is gone", resource, name)
			}
		}
	})
}

// TestPausesByHand holds that what people have written to pause the operator goes: its ConfigMap, whoever made it, and annotations of
// objects and of the namespaces in which it works.
func TestPausesByHand(t *testing.T) {
	tests := map[string]struct {
		scope   dsl.Scope
		refused refusals
		left    []string // the namespaces that are still paused
		unseen  int
	}{
		"of an operator everywhere":                      {},
		"of one that works in namespaces by a glob":      {scope: dsl.Scope{Namespaces: []string{"def*"}}},
		"where annotations of namespaces do not count":   {scope: dsl.Scope{Namespaces: []string{"default"}}, left: []string{"default", "elsewhere"}},
		"where another deployment may be paused by them": {scope: dsl.Scope{Namespaces: []string{"def*"}}, refused: refusals{"GET /v1/leases": forbidden}, left: []string{"elsewhere"}},
		"which may not be seen":                          {refused: refusals{"GET /v1/namespaces": forbidden}, left: []string{"default", "elsewhere"}, unseen: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{}, tt.refused, func(c *kit.Cluster, op *dsl.Operator, clean *cleanup.Cleaner) {
				ctx := context.WithoutCancel(t.Context())
				op.Scope = tt.scope
				pausedBy := map[string]string{"op.handwerk.dev/paused": "looking", "op.handwerk.dev/paused-deletions": "proceed", "theirs": "x"}
				annotate := func(o *unstructured.Unstructured) { o.SetAnnotations(pausedBy) }
				for _, ns := range []string{"default", "elsewhere"} {
					c.Update("namespaces.v1", "", ns, annotate)
				}
				c.Update(foos, "default", "web", annotate)
				c.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: op-paused, namespace: system}, data: {reason: looking}}`)
				found := clean.Look(ctx)
				if len(found.Unseen) != tt.unseen {
					t.Errorf("unseen are %v", found.Unseen)
				}
				found.Unseen = nil // else its own objects stay
				if failed := clean.Remove(ctx, found, nil); len(failed) > 0 {
					t.Error(failed)
				}
				if c.Get(configMaps, system, "op-paused") != nil {
					t.Error("the operator is still paused")
				}
				if diff := cmp.Diff(map[string]string{"theirs": "x"}, c.Get(foos, "default", "web").GetAnnotations()); diff != "" {
					t.Errorf("annotations of the object (-want +got):\n%s", diff)
				}
				var left []string
				for _, ns := range []string{"default", "elsewhere"} {
					switch notes := c.Get("namespaces.v1", "", ns).GetAnnotations(); {
					case len(notes) == len(pausedBy):
						left = append(left, ns)
					case len(notes) != 1:
						t.Errorf("annotations of namespace %s: %v", ns, notes)
					}
				}
				if diff := cmp.Diff(tt.left, left); diff != "" {
					t.Errorf("paused namespaces (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAChildThatIsHandledToo holds that a child goes that has the operator's finalizer, as one has that is handled itself.
func TestAChildThatIsHandledToo(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		ctx := context.WithoutCancel(t.Context())
		const bars = "bars.v1.example.com"
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"}, kit.Resource{Name: bars, Kind: "Bar"})
		op := dsl.New("op")
		op.Resource(foos, func(foo *dsl.Resource) {
			foo.Owns(bars)
			foo.OnReconcile("make", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, map[string]any{"apiVersion": "example.com/v1", "kind": "Bar", "metadata": map[string]any{"name": r.Object.GetName()}})
				return err
			})
		})
		op.Resource(bars, func(bar *dsl.Resource) {
			bar.OnDelete("hold", func(context.Context, *dsl.Request) error { return nil })
		})
		p := c.Start(op)
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}}`)
		c.Advance(time.Minute)
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if bar := c.Get(bars, "default", "web"); bar == nil || len(bar.GetFinalizers()) != 1 {
			t.Fatalf("the child is %v", bar)
		}
		clean, err := cleanup.New(ctx, op, cleanup.Settings{Config: c.Config(), Namespace: "default", DeleteChildren: true})
		if err != nil {
			t.Fatal(err)
		}
		if failed := clean.Remove(ctx, clean.Look(ctx), nil); len(failed) > 0 {
			t.Error(failed)
		}
		if bar := c.Get(bars, "default", "web"); bar != nil {
			t.Errorf("the child is still there: %v", bar.Object["metadata"])
		}
	})
}

// expiring makes a list that has pages, and forgets the place of the second page once.
func expiring(next http.RoundTripper) http.RoundTripper {
	forgotten := false
	return trip(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/foos") || r.Method != http.MethodGet {
			return next.RoundTrip(r)
		}
		query := r.URL.Query()
		place, limited := query.Get("continue"), query.Get("limit") != ""
		if place != "" && !forgotten {
			forgotten = true
			return refusals{"GET /foos": apierrors.NewResourceExpired("the continue token is too old")}.RoundTrip(next).RoundTrip(r)
		}
		query.Del("continue")
		query.Del("limit")
		whole := r.Clone(r.Context())
		whole.URL.RawQuery = query.Encode()
		if limited && place == "" {
			return paged(next, whole)
		}
		return next.RoundTrip(whole)
	})
}

// paged is the answer to a list, as if there were a second page.
func paged(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return rewritten(answer, func(list map[string]any) {
		list["metadata"].(map[string]any)["continue"] = "place"
		list["items"] = list["items"].([]any)[:1]
	})
}

// TestAListThatExpiresBetweenItsPages holds that a list whose next page the server has forgotten is read again, and that nothing is
// found twice.
func TestAListThatExpiresBetweenItsPages(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, op *dsl.Operator, _ *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		set := cleanup.Settings{Config: c.Config(), Namespace: system}
		set.Config.Wrap(expiring)
		clean, err := cleanup.New(ctx, op, set)
		if err != nil {
			t.Fatal(err)
		}
		found := clean.Look(ctx)
		if diff := cmp.Diff([]string{"Foo default/going", "Foo default/web"}, names(found.Objects)); diff != "" || len(found.Unseen) > 0 {
			t.Errorf("found (-want +got):\n%s%v", diff, found.Unseen)
		}
	})
}

// TestACleanupThatIsInterrupted holds that an interrupted cleanup says in one line how much is left, and that another one does the rest.
func TestACleanupThatIsInterrupted(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
		failed := clean.Remove(ctx, clean.Look(ctx), func(cleanup.Found) { cancel(errors.New("interrupted")) })
		if text := fmt.Sprint(failed); text != "[cleaning the other 7 objects: interrupted]" {
			t.Errorf("failed is %s", text)
		}
		ctx = context.WithoutCancel(t.Context())
		if failed := clean.Remove(ctx, clean.Look(ctx), nil); len(failed) > 0 {
			t.Error(failed)
		}
		if left := marked(c); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// TestACleanupHasNoRateLimit holds that a cleanup of many objects takes no longer than the API server does.
func TestACleanupHasNoRateLimit(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, op *dsl.Operator, _ *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		for i := range 50 {
			c.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: more-%d, annotations: {op.handwerk.dev/state: x}}}`, i))
		}
		set := cleanup.Settings{Config: c.Config(), Namespace: system}
		set.Config.QPS = 0 // what a kubeconfig says
		begun := time.Now()
		clean, err := cleanup.New(ctx, op, set)
		if err != nil {
			t.Fatal(err)
		}
		if failed := clean.Remove(ctx, clean.Look(ctx), nil); len(failed) > 0 {
			t.Error(failed)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestALookChangesNothing holds that a look only reads.
func TestALookChangesNothing(t *testing.T) {
	scene(t, cleanup.Settings{DeleteChildren: true}, nil, func(c *kit.Cluster, op *dsl.Operator, _ *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		set := cleanup.Settings{Config: c.Config(), Namespace: system}
		var mu sync.Mutex
		var methods []string
		set.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return trip(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				methods = append(methods, r.Method)
				mu.Unlock()
				return next.RoundTrip(r)
			})
		})
		clean, err := cleanup.New(ctx, op, set)
		if err != nil {
			t.Fatal(err)
		}
		clean.Look(ctx)
		slices.Sort(methods)
		if got := slices.Compact(methods); !slices.Equal(got, []string{http.MethodGet}) {
			t.Errorf("the requests are %v", got)
		}
	})
}

// TestAnOperatorThatRunsElsewhere holds that a process is seen whose Lease is in another namespace, and that an operator of the same
// name which works in other namespaces keeps its marks.
func TestAnOperatorThatRunsElsewhere(t *testing.T) {
	tests := map[string]struct {
		scope   []string
		refused refusals
		running string
		objects []string
	}{
		"on the same objects":                     {nil, nil, "elsewhere-0 renews Lease elsewhere/op-leader", []string{"Foo default/going", "Foo default/web"}},
		"in another namespace":                    {[]string{"elsewhere"}, nil, "", []string{"Foo default/going", "Foo default/web"}},
		"in another namespace, which is not seen": {[]string{"elsewhere"}, refusals{"GET /v1/leases": forbidden}, "", []string{"Foo default/going", "Foo default/web"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{}, tt.refused, func(c *kit.Cluster, op *dsl.Operator, clean *cleanup.Cleaner) {
				ctx := context.WithoutCancel(t.Context())
				op.Scope.Namespaces = []string{"default"}
				other := dsl.New("op")
				declare(other)
				other.Settings.LeaderElection.Namespace = "elsewhere"
				other.Scope.Namespaces = tt.scope
				c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: theirs, namespace: elsewhere}, spec: {size: 1}}`)
				c.Start(other, func(s *engine.Settings) { s.Namespace, s.Identity = "elsewhere", "elsewhere-0" })
				c.Advance(time.Minute)
				if running, err := clean.Running(ctx, time.Now()); running != tt.running || err != nil {
					t.Errorf("running is %q, %v", running, err)
				}
				if tt.running != "" {
					return
				}
				if diff := cmp.Diff(tt.objects, names(clean.Look(ctx).Objects)); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAnOperatorOfTheSameNameInNamespacesOfOtherLabels holds that what another deployment works on, in namespaces that have other
// labels, stays.
func TestAnOperatorOfTheSameNameInNamespacesOfOtherLabels(t *testing.T) {
	tests := map[string]struct {
		tenant  string
		refused refusals
		objects []string
		unseen  int
	}{
		"which are known":           {"gold", nil, []string{"Foo default/going", "Foo default/web"}, 0},
		"which are not its own":     {"iron", nil, []string{}, 0},
		"which may not be read":     {"gold", refusals{"GET /v1/namespaces": forbidden}, []string{}, 2},
		"and its Lease is not seen": {"gold", refusals{"GET /v1/leases": forbidden}, []string{"Foo default/going", "Foo default/web"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{}, tt.refused, func(c *kit.Cluster, op *dsl.Operator, clean *cleanup.Cleaner) {
				op.Scope.NamespaceSelector = "tenant=gold"
				other := dsl.New("op")
				declare(other)
				other.Settings.LeaderElection.Namespace = "elsewhere"
				other.Scope.NamespaceSelector = "tenant=iron,!old"
				c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: theirs, namespace: elsewhere}, spec: {size: 1}}`)
				for ns, tenant := range map[string]string{"default": tt.tenant, "elsewhere": "iron"} {
					c.Update("namespaces.v1", "", ns, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"tenant": tenant}) })
				}
				c.Start(other, func(s *engine.Settings) { s.Namespace, s.Identity = "elsewhere", "elsewhere-0" })
				c.Advance(time.Minute)
				found := clean.Look(context.WithoutCancel(t.Context()))
				if diff := cmp.Diff(tt.objects, append([]string{}, names(found.Objects)...)); diff != "" || len(found.Unseen) != tt.unseen {
					t.Errorf("unseen are %v; found (-want +got):\n%s", found.Unseen, diff)
				}
			})
		})
	}
}

// TestAnotherNamespaceThanTheOperators holds that a person who gives the wrong namespace is shown where the operator's Lease is.
func TestAnotherNamespaceThanTheOperators(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, op *dsl.Operator, _ *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		op.Settings.LeaderElection.Namespace = "" // that of the Pod
		clean, err := cleanup.New(ctx, op, cleanup.Settings{Config: c.Config(), Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		found := clean.Look(ctx)
		if diff := cmp.Diff([]string{system}, found.Elsewhere); diff != "" || len(found.Own) > 0 {
			t.Errorf("found %v of its own; elsewhere (-want +got):\n%s", names(found.Own), diff)
		}
	})
}

// TestPoliciesOfAnotherNamespaceThanTheOperators holds that a person who gives the wrong namespace is shown where policies belong,
// and that those of other operators are not shown.
func TestPoliciesOfAnotherNamespaceThanTheOperators(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		for i, label := range []string{"op.system", "op.default", "op.default", "op.v2.elsewhere", "other.default"} {
			c.Create(fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: rule-%d,
				labels: {handwerk.dev/admission-of: %s}}, spec: {policyName: rule, validationActions: [Deny]}}`, i, label))
		}
		found := clean.Look(context.WithoutCancel(t.Context()))
		if diff := cmp.Diff([]string{"default"}, found.Admission); diff != "" || !slices.Contains(names(found.Own), "ValidatingAdmissionPolicyBinding rule-0") {
			t.Errorf("found %v of its own; of other namespaces (-want +got):\n%s", names(found.Own), diff)
		}
	})
}

// rewritten is an answer with another body.
func rewritten(answer *http.Response, change func(map[string]any)) (*http.Response, error) {
	defer answer.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	change(body)
	text, err := json.Marshal(body)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Del("Content-Length")
	return answer, err
}
