// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestPauseAndResume holds what the commands write, and what they say.
func TestPauseAndResume(t *testing.T) {
	tests := map[string]struct {
		commands []string
		want     map[string]string
		says     string
	}{
		"a pause until somebody resumes": {
			[]string{"pause --operator foo -m looking"},
			map[string]string{"reason": "looking", "deletions": "hold", "until": ""}, "operator foo is paused until operator resume (ConfigMap handwerk-system/foo-paused)\n",
		},
		"for a time": {
			[]string{"pause --config foo.yaml -m looking --for 2h"},
			map[string]string{"reason": "looking", "deletions": "hold", "until": "2h0m0s"}, "operator foo is paused until 2000-01-01T02:00:00Z ",
		},
		"deletions go on": {
			[]string{"pause --operator foo -m looking --deletions proceed"},
			map[string]string{"reason": "looking", "deletions": "proceed", "until": ""}, "is paused",
		},
		"another pause takes the place of the one before": {
			[]string{"pause --operator foo -m looking --for 2h --deletions proceed", "pause --operator foo -m again"},
			map[string]string{"reason": "again", "deletions": "hold", "until": ""}, "is paused until operator resume",
		},
		"a resume ends it": {
			[]string{"pause --operator foo -m looking", "resume --operator foo"}, nil, "operator foo goes on\n",
		},
		"a resume with the configuration ends a pause under an earlier name": {
			[]string{"pause --operator older --operator-namespace handwerk-system -m looking", "resume --config foo.yaml"}, nil, "operator foo goes on\n",
		},
		"a resume without a pause says so": {
			[]string{"resume --operator foo"}, nil, "operator foo is not paused (there is no ConfigMap handwerk-system/foo-paused)\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
				c.Create(leaseOfFoo("handwerk-system"))
				b := newBench(t)
				b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
				b.load = func(paths []string, r *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
					op, err := load(paths, r, beside...)
					op.Was = []string{"older"}
					return op, err
				}
				for _, args := range tt.commands {
					if code := b.execute(context.WithoutCancel(t.Context()), strings.Fields(args)); code != exitOK {
						t.Fatalf("operator %s: exit code %d: %s", args, code, b.err.String())
					}
				}
				if said := b.out.String(); !strings.Contains(said, tt.says) {
					t.Errorf("it says %q, want %q", said, tt.says)
				}
				var data map[string]string
				if o := c.Get("configmaps.v1", "handwerk-system", "foo-paused"); o != nil {
					data, _, _ = unstructured.NestedStringMap(o.Object, "data")
					since, err := time.Parse(time.RFC3339, data["since"])
					if err != nil || data["by"] == "" {
						t.Errorf("data %v, want since and by in it", data)
					}
					if until, err := time.Parse(time.RFC3339, data["until"]); err == nil {
						data["until"] = until.Sub(since).String()
					}
					delete(data, "since")
					delete(data, "by")
				}
				if c.Get("configmaps.v1", "handwerk-system", "older-paused") != nil {
					t.Error("the pause under the earlier name goes on")
				}
				if diff := cmp.Diff(tt.want, data); diff != "" {
					t.Errorf("data (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAPauseTakesThePlaceOfOneByHand holds that no key of a ConfigMap that others have made or edited counts afterwards.
func TestAPauseTakesThePlaceOfOneByHand(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
		c.Create(leaseOfFoo("handwerk-system"))
		c.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: foo-paused, namespace: handwerk-system}, data: {reason: mine, until: "2000-01-01T01:00:00Z", deletions: proceed}}`)
		b := newBench(t)
		b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
		if code := b.execute(context.WithoutCancel(t.Context()), strings.Fields("pause --operator foo -m again")); code != exitOK {
			t.Fatalf("exit code %d: %s", code, b.err.String())
		}
		data, _, _ := unstructured.NestedStringMap(c.Get("configmaps.v1", "handwerk-system", "foo-paused").Object, "data")
		if got := pause.FromData(data); !got.Until.IsZero() || got.Deletions || got.Reason != "again" {
			t.Errorf("the pause is %+v, and it was said: %s", got, b.out.String())
		}
	})
}

// clockAhead is a server whose clock is ahead of this machine's.
type clockAhead struct {
	http.RoundTripper
	by time.Duration
}

func (c clockAhead) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Header.Set("Date", time.Now().Add(c.by).UTC().Format(http.TimeFormat))
	}
	return answer, err
}

// TestAPauseEndsByTheClockOfTheServer holds that --for means the same whatever the clock of the person's machine says.
func TestAPauseEndsByTheClockOfTheServer(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
		c.Create(leaseOfFoo("handwerk-system"))
		b := newBench(t)
		b.login = func(context.Context) (*rest.Config, error) {
			config := c.Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return clockAhead{next, 5 * time.Hour} })
			return config, nil
		}
		if code := b.execute(context.WithoutCancel(t.Context()), strings.Fields("pause --operator foo -m looking --for 1h")); code != exitOK {
			t.Fatalf("exit code %d: %s", code, b.err.String())
		}
		data, _, _ := unstructured.NestedStringMap(c.Get("configmaps.v1", "handwerk-system", "foo-paused").Object, "data")
		if data["since"] != "2000-01-01T05:00:00Z" || data["until"] != "2000-01-01T06:00:00Z" {
			t.Errorf("the pause is %v", data)
		}
		if said := b.out.String(); !strings.Contains(said, "until 2000-01-01T06:00:00Z") {
			t.Errorf("it says %q", said)
		}
	})
}

// leaseOfFoo is the lock of operator foo in a namespace.
func leaseOfFoo(namespace string) string {
	return `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: foo-leader, namespace: ` + namespace + `, annotations: {foo.handwerk.dev/scope: ""}}}`
}

// TestAPauseGoesWhereTheOperatorRuns holds in which namespace the ConfigMap is made: where processes of the operator read it, or
// nowhere.
func TestAPauseGoesWhereTheOperatorRuns(t *testing.T) {
	tests := map[string]struct {
		leases  []string // their namespaces
		flags   string
		want    string // the namespace of the ConfigMap
		refused string
	}{
		"that of the Lease":                   {[]string{"shop"}, "--operator foo", "shop", ""},
		"that of the Lease, with its file":    {[]string{"shop"}, "--config foo.yaml", "shop", ""},
		"that of the flag":                    {[]string{"shop"}, "--operator foo --operator-namespace other", "other", ""},
		"that of the flag, without any Lease": {nil, "--operator foo --operator-namespace other", "other", ""},
		"none without a Lease":                {nil, "--operator foo", "", "finding operator foo: no Lease of this operator is there, which says where it runs: set --operator-namespace to the namespace of its Pods, or to default if it runs on this machine"},
		"none if there are two":               {[]string{"shop", "other"}, "--operator foo", "", "finding operator foo: several are there: choose one by --operator and --operator-namespace: operator foo (Lease other/foo-leader), operator foo (Lease shop/foo-leader)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				all := []string{"default", "handwerk-system", "shop", "other"}
				for _, namespace := range all[1:] {
					c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `}}`)
				}
				for _, namespace := range tt.leases {
					c.Create(leaseOfFoo(namespace))
				}
				there := func() (out []string) {
					for _, namespace := range all {
						if c.Get("configmaps.v1", namespace, "foo-paused") != nil {
							out = append(out, namespace)
						}
					}
					return out
				}
				b := newBench(t)
				b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
				run := func(command string, want ...string) {
					t.Helper()
					code := b.execute(context.WithoutCancel(t.Context()), strings.Fields(command+" "+tt.flags))
					if refused := b.err.String(); (code == exitOK) != (tt.refused == "") || !strings.Contains(refused, tt.refused) {
						t.Errorf("%s: exit code %d, and %q; want %q", command, code, refused, tt.refused)
					}
					if diff := cmp.Diff(want, there()); diff != "" {
						t.Errorf("%s: namespaces with the ConfigMap (-want +got):\n%s", command, diff)
					}
				}
				if tt.want == "" {
					run("pause -m looking")
				} else {
					run("pause -m looking", tt.want)
				}
				run("resume")
			})
		})
	}
}

// TestRetryCommand holds what retry writes, and what it says if no operator takes the annotation off.
func TestRetryCommand(t *testing.T) {
	tests := map[string]struct {
		args, key, want string
		code            int
		says            string
	}{
		"all handlers": {"retry foo/web --operator op --timeout 0", "op.handwerk.dev/retry", "*", exitOK, "foo/web: operator op is asked to retry\n"},
		"one handler of an operator with a domain": {
			"retry foos.example.com/web --operator op.example.com --handler sync --timeout 0", "op.example.com/retry", "sync", exitOK, "is asked to retry",
		},
		"several handlers":               {"retry foos/web --operator op --handler sync --handler other --timeout 0", "op.handwerk.dev/retry", "sync,other", exitOK, "is asked"},
		"no operator runs":               {"retry foos/web --operator op --timeout 5s", "op.handwerk.dev/retry", "*", exitFailed, "has not taken up the annotation op.handwerk.dev/retry in 5s"},
		"there is no object":             {"retry foos/other --operator op", "op.handwerk.dev/retry", "", exitFailed, "retrying foos/other: foos.example.com \"other\" not found"},
		"there is no such kind":          {"retry bars/web --operator op", "op.handwerk.dev/retry", "", exitFailed, "retrying bars/web: "},
		"a handler of the configuration": {"retry foos/web --config foo.yaml --handler first --timeout 0", "foo.handwerk.dev/retry", "first", exitOK, "is asked"},
		"a handler that is mistyped": {
			"retry foos/web --config foo.yaml --handler frist", "foo.handwerk.dev/retry", "", exitFailed,
			"retrying foos/web: operator foo has no handler frist for foos.example.com; its handlers are first, second",
		},
		"a resource that the operator does not handle": {
			"retry configmaps/web --config foo.yaml", "foo.handwerk.dev/retry", "", exitFailed, "retrying configmaps/web: operator foo does not handle configmaps",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: "foos.v1.example.com", Kind: "Foo"})
				c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}}`)
				b := newBench(t)
				b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
				code := b.execute(context.WithoutCancel(t.Context()), strings.Fields(tt.args))
				if said := b.out.String() + b.err.String(); code != tt.code || !strings.Contains(said, tt.says) {
					t.Errorf("exit code %d, and it says %q; want %d and %q", code, said, tt.code, tt.says)
				}
				if got := c.Get("foos.v1.example.com", "default", "web").GetAnnotations()[tt.key]; got != tt.want {
					t.Errorf("the annotation is %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestAPauseInANamespaceThatIsNotThere holds that the error says which flag names the operator's own.
func TestAPauseInANamespaceThatIsNotThere(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		b := newBench(t)
		b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
		args := strings.Fields("pause --operator foo --operator-namespace away -m looking")
		code := b.execute(context.WithoutCancel(t.Context()), args)
		if said := b.err.String(); code != exitFailed || !strings.Contains(said, `namespaces "away" not found`) || !strings.Contains(said, "--operator-namespace") {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
}
