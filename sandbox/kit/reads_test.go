// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// failing is a test within a test, whose failures it keeps.
type failing struct {
	playedTest
	faults []string
}

func (t *failing) Errorf(text string, a ...any) { t.faults = append(t.faults, fmt.Sprintf(text, a...)) }

// faultsOf runs an operator over a Foo with fields that its handlers do not list, and returns the faults of the test.
func faultsOf(t *testing.T, declare func(foo *dsl.Resource)) (faults []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		played := &failing{playedTest: playedTest{TB: t}}
		c := kit.New(played)
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		op := dsl.New("web")
		op.Resource(foos, declare)
		c.Start(op)
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {a: b}}, spec: {size: 1, color: red, door: {open: true}}}`)
		c.Settle()
		played.end()
		faults = played.faults
	})
	return faults
}

type doorOnly struct {
	Spec struct {
		Door struct {
			Open bool `json:"open"`
		} `json:"door"`
	} `json:"spec"`
}

type sizeOnly struct {
	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

// TestReadingAFieldThatIsNotListedFails holds that a test fails when a handler reads its object past what its dsl.Reads lists, by
// whichever way, and whatever the handler makes of the error.
func TestReadingAFieldThatIsNotListedFails(t *testing.T) {
	const color, door = "handler h of " + foos + ` reads spec.color, which its dsl.Reads does not list: add "spec.color" to it`,
		"handler h of " + foos + ` reads spec.door, which its dsl.Reads does not list: add "spec.door" to it`
	const panicked = "handler h of " + foos + " panicked over a field"
	for name, test := range map[string]struct {
		read func(o *unstructured.Unstructured, r *dsl.Request)
		want string
	}{
		"by a helper of package unstructured": {func(o *unstructured.Unstructured, _ *dsl.Request) {
			_, _, _ = unstructured.NestedString(o.Object, "spec", "color")
		}, color},
		"… that looks further down": {func(o *unstructured.Unstructured, _ *dsl.Request) {
			_, _, _ = unstructured.NestedBool(o.Object, "spec", "door", "open")
		}, door},
		"by a path":                        {func(o *unstructured.Unstructured, _ *dsl.Request) { dsl.MustParsePath("spec.color").In(o.Object) }, color},
		"by a path that goes further down": {func(o *unstructured.Unstructured, _ *dsl.Request) { dsl.MustParsePath("spec.door.open").In(o.Object) }, door},
		"by Into": {func(_ *unstructured.Unstructured, r *dsl.Request) {
			var text string
			_ = r.Into("spec.color", &text)
		}, color},
		"by a type that has the field": {func(o *unstructured.Unstructured, _ *dsl.Request) { _, _ = dsl.As[doorOnly](o) }, door},
		"as text": {func(o *unstructured.Unstructured, _ *dsl.Request) {
			_ = fmt.Sprint(o.Object["spec"].(map[string]any)["color"])
		}, color},
		"as JSON": {func(o *unstructured.Unstructured, _ *dsl.Request) {
			_, _ = json.Marshal(o.Object["spec"].(map[string]any)["color"])
		}, color},
		"by a conversion": {func(o *unstructured.Unstructured, _ *dsl.Request) {
			_ = o.Object["spec"].(map[string]any)["color"].(string)
		}, panicked},
		"by a copy of all": {func(o *unstructured.Unstructured, _ *dsl.Request) { o.DeepCopy() }, panicked},
		"not at all":       {func(*unstructured.Unstructured, *dsl.Request) {}, ""},
		"what is listed": {func(o *unstructured.Unstructured, _ *dsl.Request) {
			_, _, _ = unstructured.NestedInt64(o.Object, "spec", "size")
		}, ""},
		"metadata":                  {func(o *unstructured.Unstructured, _ *dsl.Request) { o.GetLabels() }, ""},
		"a listed type":             {func(o *unstructured.Unstructured, _ *dsl.Request) { _, _ = dsl.As[sizeOnly](o) }, ""},
		"a field that is not there": {func(o *unstructured.Unstructured, _ *dsl.Request) { dsl.MustParsePath("spec.size.none").In(o.Object) }, ""},
		"a part of what is listed": {func(_ *unstructured.Unstructured, r *dsl.Request) {
			var spec struct{ Size int }
			if err := r.Into("spec", &spec); err != nil || spec.Size != 1 {
				panic(fmt.Sprint(err, spec))
			}
		}, ""},
	} {
		code := func(_ context.Context, r *dsl.Request) error { test.read(r.Object, r); return nil }
		for kind, declare := range map[string]func(foo *dsl.Resource){
			"a handler": func(foo *dsl.Resource) { foo.OnReconcile("h", code, dsl.Reads("spec.size")) },
			"a sub-handler": func(foo *dsl.Resource) {
				foo.OnCreate("h", func(_ context.Context, r *dsl.Request) error { r.Handle("part", code); return nil }, dsl.Reads("spec.size"))
			},
			"a daemon": func(foo *dsl.Resource) {
				foo.Daemon("h", func(_ context.Context, r *dsl.DaemonRequest) error {
					test.read(r.Current(), &dsl.Request{Subject: dsl.Subject{Object: r.Object, Kept: r.Kept}})
					return nil
				}, dsl.Reads("spec.size"))
			},
		} {
			if kind == "a daemon" && test.want == panicked {
				continue // the log has it
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				got := strings.Join(faultsOf(t, declare), "\n")
				if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
					t.Errorf("the test fails with %q, want %q", got, test.want)
				}
			})
		}
	}
}
