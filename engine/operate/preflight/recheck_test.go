// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// publisher publishes the schema of Foos, which have one field, in the API server's form.
type publisher struct {
	mu       sync.Mutex
	field    string
	down     bool
	requests int
}

func (p *publisher) set(field string, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.field, p.down = field, down
}

// asked returns how many requests there were since it was called last.
func (p *publisher) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.requests
	p.requests = 0
	return n
}

// RoundTrip answers a request.
func (p *publisher) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.down {
		return nil, errors.New("it is down")
	}
	body := fmt.Sprintf(`{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=%s"}}}`, p.field)
	if strings.HasSuffix(r.URL.Path, "v1") {
		body = fmt.Sprintf(`{"components": {"schemas": {"Foo": {"type": "object", "properties": {%q: {"type": "string"}},
			"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Foo"}]}}}}`, p.field)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// wantsSize is an operator with a check that Foos have a size, or without one.
func wantsSize(checked bool) *dsl.Operator {
	op := dsl.New("foo")
	op.Resource("foos.v1.example.com", func(foo *dsl.Resource) {
		if !checked {
			return
		}
		foo.Checks = append(foo.Checks, func(s shape.Schemas) (faults []error) {
			if s.Self.Schema == nil {
				return nil
			}
			for _, field := range []string{"size", "Size"} {
				if _, has := s.Self.Schema.Properties[field]; has {
					return nil
				}
				faults = append(faults, errors.New("no field "+field))
			}
			return faults
		})
	})
	return op
}

// declares are Foos with a check that they have a field.
func declares(name, field string) *dsl.Resource {
	op := dsl.New("foo")
	op.Resource(name, func(foo *dsl.Resource) {
		foo.Checks = append(foo.Checks, func(s shape.Schemas) []error {
			if s.Self.Schema == nil {
				return nil
			}
			if _, has := s.Self.Schema.Properties[field]; !has {
				return []error{errors.New("no field " + field)}
			}
			return nil
		})
	})
	return op.Resources()[0]
}

// working is a function that returns the resources that are worked on.
type working func() []*dsl.Resource

func (w working) Resources() []*dsl.Resource { return w() }

// TestAnotherDeclarationIsCheckedAgain holds that a resource that is stopped and started otherwise is held against the
// schemas as it is then, that nothing is said of what was before, and that one that starts as it was is checked, too.
func TestAnotherDeclarationIsCheckedAgain(t *testing.T) {
	const name, other = "foos.v1.example.com", "foos.example.com"
	fits, misfits, left := declares(name, "size"), declares(name, "name"), declares(other, "size")
	tests := map[string]struct {
		first, second *dsl.Resource
		// between is how long nothing is worked on, beside what is left.
		between time.Duration
		left    []*dsl.Resource
		want    [3]string // what is said before, between and after
	}{
		"the first one does not fit":                              {misfits, fits, time.Hour, nil, [3]string{"no field name", "", ""}},
		"the second one does not fit":                             {fits, misfits, time.Hour, nil, [3]string{"", "", "no field name"}},
		"the first one does not fit, and the second comes soon":   {misfits, fits, time.Second, nil, [3]string{"no field name", "", ""}},
		"the second one does not fit, and comes soon":             {fits, misfits, time.Second, nil, [3]string{"", "", "no field name"}},
		"the first one does not fit, and others are left":         {misfits, fits, time.Hour, []*dsl.Resource{left}, [3]string{"no field name", "", ""}},
		"the second one does not fit, and others are left":        {fits, misfits, time.Hour, []*dsl.Resource{left}, [3]string{"", "", "no field name"}},
		"the second one comes soon, and others are left":          {fits, misfits, time.Second, []*dsl.Resource{left}, [3]string{"", "", "no field name"}},
		"the second one does not fit where the first one did not": {misfits, declares(name, "color"), time.Second, nil, [3]string{"no field name", "", "no field color"}},
		"what did not fit is started again as it was":             {misfits, misfits, time.Hour, nil, [3]string{"no field name", "", "no field name"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var works atomic.Pointer[[]*dsl.Resource]
				served := func(yield func(dsl.ResourceName, discovery.Resource) bool) {
					for _, r := range *works.Load() {
						gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
						if !yield(r.Name, discovery.Resource{GVR: gvr, Kind: "Foo"}) {
							return
						}
					}
				}
				client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: &publisher{field: "size"}})
				if err != nil {
					t.Fatal(err)
				}
				c := NewRecheck(working(func() []*dsl.Resource { return *works.Load() }), nil, discovery.New(client, nil, nil), served, logr.Discard())
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				works.Store(&test.left)
				running.Go(func() { c.Run(ctx) })
				for i, step := range []struct {
					spec  *dsl.Resource
					lasts time.Duration
				}{{test.first, time.Hour}, {nil, test.between}, {test.second, time.Hour}} {
					now := test.left
					if step.spec != nil {
						now = append([]*dsl.Resource{step.spec}, now...)
					}
					works.Store(&now)
					c.Wake()
					time.Sleep(step.lasts)
					synctest.Wait()
					said := ""
					for _, check := range c.Checks() {
						said += check.Message
					}
					if said != test.want[i] {
						t.Errorf("step %d: it is said %q, want %q", i, said, test.want[i])
					}
					if step.lasts == time.Hour && len(c.findings) > len(now) {
						t.Errorf("step %d: something is known of %d declarations, of %d", i, len(c.findings), len(now))
					}
				}
				cancel()
				running.Wait()
			})
		})
	}
}

func TestARunningOperatorIsHeldAgainstSchemas(t *testing.T) {
	const misfits, fits = "an expression does not fit the cluster's schemas", "expressions fit the cluster's schemas again"
	after := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	}
	tests := map[string]struct {
		unchecked bool
		play      func(t *testing.T, p *publisher, serve func(bool), c *Recheck)
		want      string
		logged    []string
		asked     int
	}{
		"what does not fit is shown when the resource comes": {
			play: func(_ *testing.T, _ *publisher, serve func(bool), _ *Recheck) {
				serve(true)
				after(3 * time.Second)
			}, want: "no field size (and 1 more)", logged: []string{misfits, misfits}, asked: 2,
		},
		"and is looked at three times, as schemas come later": {
			play: func(_ *testing.T, _ *publisher, serve func(bool), _ *Recheck) {
				serve(true)
				after(24 * time.Hour)
			}, want: "no field size (and 1 more)", logged: []string{misfits, misfits}, asked: 4,
		},
		"what fits after a CRD has changed is not shown any more": {
			play: func(_ *testing.T, p *publisher, serve func(bool), c *Recheck) {
				serve(true)
				after(time.Hour)
				p.set("size", false)
				c.CRDChanged()
				after(3 * time.Second)
			}, logged: []string{misfits, misfits, fits}, asked: 6,
		},
		"nothing is asked when all is as it was": {
			play: func(_ *testing.T, p *publisher, serve func(bool), c *Recheck) {
				serve(true)
				after(time.Hour)
				p.asked()
				c.Wake()
				after(time.Hour)
			}, want: "no field size (and 1 more)", logged: []string{misfits, misfits},
		},
		"nothing is asked without expressions": {
			unchecked: true,
			play: func(_ *testing.T, _ *publisher, serve func(bool), c *Recheck) {
				serve(true)
				c.CRDChanged()
				after(time.Hour)
			},
		},
		"nothing is held against it while schemas cannot be read": {
			play: func(t *testing.T, p *publisher, serve func(bool), c *Recheck) {
				p.set("size", false)
				serve(true)
				after(time.Hour)
				p.set("name", true)
				c.CRDChanged()
				after(time.Hour)
				if got := c.Checks(); len(got) > 0 {
					t.Errorf("it is said that %v", got)
				}
				p.set("name", false)
				p.asked()
				c.Wake()
				after(3 * time.Second)
			}, want: "no field size (and 1 more)", logged: []string{misfits, misfits}, asked: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &publisher{field: "name"}
				var mu sync.Mutex
				there, logged := false, []string(nil)
				served := func(yield func(dsl.ResourceName, discovery.Resource) bool) {
					mu.Lock()
					defer mu.Unlock()
					gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
					if there {
						yield(dsl.ResourceName{Group: "example.com", Version: "v1", Resource: "foos"}, discovery.Resource{GVR: gvr, Kind: "Foo"})
					}
				}
				client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: p})
				if err != nil {
					t.Fatal(err)
				}
				log := funcr.New(func(_, line string) {
					mu.Lock()
					defer mu.Unlock()
					for _, text := range []string{misfits, fits} {
						if strings.Contains(line, text) {
							logged = append(logged, text)
						}
					}
				}, funcr.Options{})
				c := NewRecheck(wantsSize(!test.unchecked), nil, discovery.New(client, nil, nil), served, log)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { c.Run(ctx) })
				test.play(t, p, func(is bool) {
					mu.Lock()
					there = is
					mu.Unlock()
					c.Wake()
				}, c)
				cancel()
				running.Wait()
				var want []ops.Check
				if test.want != "" {
					want = []ops.Check{{Name: "expressions/foos.v1.example.com", State: ops.Warn, Message: test.want}}
				}
				if diff := cmp.Diff(want, c.Checks()); diff != "" {
					t.Errorf("checks (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.logged, logged); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
				if n := p.asked(); n != test.asked {
					t.Errorf("%d requests, want %d", n, test.asked)
				}
			})
		})
	}
}

// TestIndexesAreCheckedAgain holds that an index is held against schemas that change, as a resource is, and that the schemas
// do not stay in memory.
func TestIndexesAreCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &publisher{field: "size"}
		client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: server})
		if err != nil {
			t.Fatal(err)
		}
		foo := declares("foos.v1.example.com", "size")
		x := &dsl.IndexSpec{Name: "sizes", Resource: foo.Name, Checks: foo.Checks}
		served := func(yield func(dsl.ResourceName, discovery.Resource) bool) {
			yield(foo.Name, discovery.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}, Kind: "Foo"})
		}
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		c := NewRecheck(dsl.New("op"), []*dsl.IndexSpec{x}, discovery.New(client, nil, nil), served, log)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		c.Wake()
		time.Sleep(time.Hour)
		synctest.Wait()
		if found := c.Checks(); len(found) > 0 || len(lines) > 0 {
			t.Errorf("of what fits there are %v, and the log says %v", found, lines)
		}
		if c.schemas != nil {
			t.Error("the schemas stay in memory when nothing changes")
		}
		server.set("width", false)
		c.CRDChanged()
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []ops.Check{{Name: "expressions/index/sizes", State: ops.Warn, Message: "no field size"}}
		if diff := cmp.Diff(want, c.Checks()); diff != "" {
			t.Errorf("checks (-want +got):\n%s", diff)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], `"index"="sizes"`) {
			t.Errorf("the log says %v", lines)
		}
		if c.schemas != nil {
			t.Error("the schemas stay in memory after a change")
		}
		cancel()
		running.Wait()
	})
}
