// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// hosted is a Foo with hosts.
const hosted = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {hosts: [{name: a.example.com, lit: true}, {name: b, lit: true}]}}`

// playForEach plays an operator whose functions are test.Note, which notes the handler, the attempt and what it is called with,
// and fails for a host that then has something for.
func playForEach(t *testing.T, handler string, then map[string]dsl.Func, play func(s *scene.Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		registry := handlers.Standard()
		registry.Function(dsl.Function{Name: "test.Note", Params: struct {
			Host string `json:"host"`
		}{}, Func: func(ctx context.Context, r *dsl.Request) error {
			host := fmt.Sprint(r.Params["host"])
			s.Add(fmt.Sprintf("%s %s %s %d", r.Handler, host, r.Cause, r.Attempt))
			if do := then[host]; do != nil {
				return do(ctx, r)
			}
			return nil
		}})
		op, err := config.Parse("operator.yaml", []byte(`
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
  - resource: foos.v1.example.com
    handlers:
`+handler), registry)
		if err != nil {
			t.Fatal(err)
		}
		s.Operator = op
		play(s)
	})
}

// setHosts sets the hosts of web, each a name, with "off " before it when its step is left out.
func setHosts(s *scene.Stage, names ...string) {
	s.T.Helper()
	list := []any{}
	for _, name := range names {
		host, off := strings.CutPrefix(name, "off ")
		list = append(list, map[string]any{"name": host, "lit": !off})
	}
	s.Set(list, "spec", "hosts")
	s.Settle()
}

// childrenByKey are the names of the ConfigMaps that there are, with the key of each.
func childrenByKey(s *scene.Stage) map[string]string {
	out := map[string]string{}
	for _, o := range s.List(scene.ConfigMaps, "default") {
		out[o.GetName()] = o.GetAnnotations()[scene.ChildAnnotation]
	}
	return out
}

// noting calls test.Note for each host.
const noting = `
      - {id: each, causes: [create, update], forEach: "${self.spec.hosts}", key: "${item.name}", call: test.Note, with: {host: "${item.name}"}}
`

// keepingHosts makes a ConfigMap for each host that is on, and reports it.
const keepingHosts = `
      - id: each
        forEach: ${self.spec.hosts}
        key: ${item.name}
        steps:
          - name: make
            when: item.lit
            apply:
              host: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item.name}"}, data: {key: "${key}"}}
          - {name: report, call: test.Note, with: {host: "${item.name} ${children.host.?data.?key.orValue('none')}"}}
      - {id: count, set: {status: {hosts: "${size(children.host)}"}}}
`

// TestAHandlerWithForEachRunsForEachEntry holds that a handler with forEach runs for each entry, each with progress of its own.
func TestAHandlerWithForEachRunsForEachEntry(t *testing.T) {
	minute := dsl.Temporary(scene.ErrAgain, time.Minute)
	t.Run("an entry that has succeeded does not run again while another one is tried again", func(t *testing.T) {
		playForEach(t, noting, map[string]dsl.Func{"a.example.com": scene.FailsFirst(2, minute)}, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Called("each/a.example.com a.example.com create 1", "each/b b create 1")
			s.Advance(time.Minute)
			s.Called("each/a.example.com a.example.com create 2")
			s.Process.Kill()
			s.Launch()
			s.Called()
			s.Advance(time.Minute)
			s.Called("each/a.example.com a.example.com create 3")
			s.Advance(time.Hour)
			s.Called()
		})
	})
	t.Run("retries are those of each entry, and one that failed for good does not keep the others back", func(t *testing.T) {
		limited := strings.Replace(noting, "call:", "retries: 1, backoff: {initial: 10s}, call:", 1)
		playForEach(t, limited, map[string]dsl.Func{"a.example.com": scene.Fails(scene.ErrAgain)}, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Called("each/a.example.com a.example.com create 1", "each/b b create 1")
			s.Advance(time.Minute)
			s.Called("each/a.example.com a.example.com create 2")
			s.Advance(time.Hour)
			s.Called()
			if events := s.Events(); len(events) == 0 || !strings.Contains(events[len(events)-1].Note, "a.example.com: not yet") {
				s.T.Errorf("events %+v", events)
			}
		})
	})
	t.Run("the entries of a map have its keys, and an entry whose key is no id has one", func(t *testing.T) {
		handler := `
      - {id: each, forEach: "${self.spec.zones}", call: test.Note, with: {host: "${key}=${item}"}}
`
		playForEach(t, handler, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {zones: {north: 1, "a b/c": 2}}}`)
			s.Called("each/a-b-c-570e31cc a b/c=2 create 1", "each/north north=1 create 1")
		})
	})
	t.Run("none, null and nothing are no entries", func(t *testing.T) {
		for _, spec := range []string{"{}", "{hosts: []}", "{hosts: null}"} {
			playForEach(t, strings.Replace(noting, "self.spec.hosts", "self.spec.?hosts", 1), nil, func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: ` + spec + `}`)
				s.Called()
				if events := s.Events(); len(events) > 0 {
					s.T.Errorf("%s: events %+v", spec, events)
				}
			})
		}
	})
	for name, one := range map[string]struct{ spec, want string }{
		"two entries of one key": {`{hosts: [{name: a}, {name: a}]}`, `items 0 and 1 of forEach have the key "a"`},
		"an entry without a key": {`{hosts: [{name: a}, {}]}`, "item 1 of forEach"},
		"too many":               {`{hosts: [` + strings.Repeat("{name: x},", 101) + `]}`, "forEach has 101 items, and the limit is 100"},
		"no list":                {`{hosts: 3}`, "forEach gives a whole number, want a list or a map"},
	} {
		t.Run(name+" fail the handler", func(t *testing.T) {
			playForEach(t, noting, nil, func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: ` + one.spec + `}`)
				s.Advance(time.Minute)
				s.Called()
				if events := s.Events(); len(events) == 0 || !strings.Contains(events[0].Note, one.want) {
					s.T.Errorf("events %+v, want one that says %q", events, one.want)
				}
			})
		})
	}
}

// wantChildren checks that these entries have their children, and that the status counts them.
func wantChildren(s *scene.Stage, names ...string) {
	s.T.Helper()
	want := map[string]string{}
	for _, name := range names {
		want[name] = "each.make/host/" + name
	}
	if diff := cmp.Diff(want, childrenByKey(s)); diff != "" {
		s.T.Errorf("children (-want +got):\n%s", diff)
	}
	if got := scene.ValueAt(s.Web(), "status.hosts"); got != int64(len(names)) {
		s.T.Errorf("status.hosts is %v, want %d", got, len(names))
	}
}

// TestEachEntryHasItsOwnChildren holds that each entry has children of its own, which go with it.
func TestEachEntryHasItsOwnChildren(t *testing.T) {
	t.Run("they come and go with their entries", func(t *testing.T) {
		playForEach(t, keepingHosts, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			wantChildren(s, "a.example.com", "b")
			s.Called("each/a.example.com a.example.com a.example.com create 1", "each/b b b create 1")
			setHosts(s, "b", "c")
			wantChildren(s, "b", "c")
			s.Process.Kill()
			setHosts(s, "c")
			s.Process.Restart()
			s.Settle()
			wantChildren(s, "c")
			setHosts(s)
			wantChildren(s)
		})
	})
	t.Run("what a step has made stays when it is left out", func(t *testing.T) {
		playForEach(t, keepingHosts, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			setHosts(s, "off a.example.com", "b")
			wantChildren(s, "a.example.com", "b")
			setHosts(s, "b")
			wantChildren(s, "b")
		})
	})
	t.Run("what somebody changes or takes away is put back", func(t *testing.T) {
		playForEach(t, keepingHosts, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			s.Delete(scene.ConfigMaps, "default", "b")
			s.Update(scene.ConfigMaps, "default", "a.example.com", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"key": "x"} })
			s.Settle()
			wantChildren(s, "a.example.com", "b")
			if got := scene.ValueAt(s.Get(scene.ConfigMaps, "default", "a.example.com"), "data.key"); got != "a.example.com" {
				s.T.Errorf("the child has the key %v", got)
			}
		})
	})
	t.Run("in a steady state nothing is written", func(t *testing.T) {
		playForEach(t, keepingHosts, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		})
	})
	t.Run("they go before their object where the garbage collector does not delete them", func(t *testing.T) {
		labelled := strings.Replace(keepingHosts, "host: {", "host: {ownership: labelled, template: {", 1)
		labelled = strings.Replace(labelled, `data: {key: "${key}"}}`, `data: {key: "${key}"}}}`, 1)
		playForEach(t, labelled, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			wantChildren(s, "a.example.com", "b")
			s.Set(int64(3), "spec", "hosts") // which says nothing of what there is
			s.Remove()
			s.Advance(time.Minute)
			if got := childrenByKey(s); len(got) > 0 || s.Web() != nil {
				s.T.Errorf("there are %v, and the object is %v", got, s.Web())
			}
		})
	})
}

// TestAFailureOfOneEntryLeavesTheOthersAlone holds that children of an entry wait, fail and collide for themselves.
func TestAFailureOfOneEntryLeavesTheOthersAlone(t *testing.T) {
	t.Run("retries and errors are those of entries: a child that cannot be taken away at once is later", func(t *testing.T) {
		for _, option := range []string{"retries: 0", "errors: fail", "errors: ignore"} {
			playForEach(t, strings.Replace(keepingHosts, "key: ${item.name}", "key: ${item.name}\n        "+option, 1), nil, func(s *scene.Stage) {
				s.Launch()
				s.Create(hosted)
				s.Settle()
				s.FailNext("delete", scene.ConfigMaps, apierrors.NewInternalError(scene.ErrAgain))
				setHosts(s, "b")
				s.Advance(time.Minute)
				wantChildren(s, "b")
			})
		}
	})
	t.Run("where two make the same one, the later fails, and the child is the first one's", func(t *testing.T) {
		same := strings.Replace(keepingHosts, `metadata: {name: "${item.name}"}`, `metadata: {name: "${item.?child.orValue(item.name)}"}`, 1)
		playForEach(t, same, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {hosts: [{name: a, lit: true}, {name: b, lit: true, child: a}]}}`)
			s.Advance(time.Hour)
			s.Process.Restart()
			s.Advance(time.Hour)
			if diff := cmp.Diff(map[string]string{"a": "each.make/host/a"}, childrenByKey(s)); diff != "" {
				s.T.Errorf("children (-want +got):\n%s", diff)
			}
			if events := s.Events(); len(events) == 0 || !strings.Contains(fmt.Sprint(events), "ConfigMap default/a: handler each/a keeps it, too, and otherwise: give each a child of its own") {
				s.T.Errorf("events %+v", events)
			}
			s.Set([]any{map[string]any{"name": "a", "lit": true, "child": "b"}, map[string]any{"name": "b", "lit": true, "child": "a"}}, "spec", "hosts")
			s.Advance(time.Hour)
			if diff := cmp.Diff(map[string]string{"a": "each.make/host/b", "b": "each.make/host/a"}, childrenByKey(s)); diff != "" {
				s.T.Errorf("children that have changed places (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("while one entry fails, none of the others goes", func(t *testing.T) {
		playForEach(t, keepingHosts, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			s.FailNext("patch", scene.ConfigMaps, apierrors.NewInternalError(scene.ErrAgain))
			setHosts(s, "c")
			if got := childrenByKey(s); len(got) != 2 {
				s.T.Errorf("while c cannot be made there are %v", got)
			}
			s.Advance(time.Minute)
			wantChildren(s, "c")
		})
	})
	t.Run("an entry that waits for its child goes on when that is ready", func(t *testing.T) {
		waiting := strings.Replace(keepingHosts, "host: {", "host: {readyWhen: \"has(child.data.ready)\", template: {", 1)
		waiting = strings.Replace(waiting, `data: {key: "${key}"}}`, `data: {key: "${key}"}}}`, 1)
		playForEach(t, waiting, nil, func(s *scene.Stage) {
			s.Launch()
			s.Create(hosted)
			s.Settle()
			s.Called()
			s.Update(scene.ConfigMaps, "default", "b", func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["ready"] = "yes" })
			s.Settle()
			s.Called("each/b b b create 1")
			s.Update(scene.ConfigMaps, "default", "a.example.com", func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["ready"] = "yes" })
			s.Settle()
			s.Called("each/a.example.com a.example.com a.example.com create 1", "each/b b b create 1")
		})
	})
}
