// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

type Inner struct {
	Name string `json:"name"`
}

type closed struct {
	Name   string `json:"name"`
	hidden string
}

type params struct {
	Inner   `json:",inline"`
	Channel string             `json:"channel"`
	Times   int8               `json:"times,omitempty"`
	Size    uint               `json:"size"`
	Ratio   float64            `json:"ratio"`
	Loud    *bool              `json:"loud"`
	Wait    metav1.Duration    `json:"wait"`
	To      []Inner            `json:"to"`
	Extra   map[string]float64 `json:"extra"`
	Raw     any                `json:"raw"`
	Plain   string
}

func registered(t *testing.T, functions ...dsl.Function) *actions.Registry {
	t.Helper()
	r := actions.NewRegistry()
	for _, f := range functions {
		r.Function(f)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

// build builds the action call of the standard registry.
func build(t *testing.T, r *actions.Registry, name string, with dsl.Params) (dsl.Func, error) {
	t.Helper()
	action, found := Standard().LookupAction("call")
	if !found {
		t.Fatal("the standard registry has no action call")
	}
	config := action.Config()
	text, ok := config.(*string)
	if !ok {
		t.Fatalf("call is configured with %T, want text", config)
	}
	*text = name
	built, err := action.Build(actions.Build{Registry: r, Params: with}, config)
	return built.Func, err
}

func TestTheStandardRegistryIsSound(t *testing.T) {
	r := Standard()
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	for _, name := range r.Actions() {
		if action, _ := r.LookupAction(name); action.Doc == "" {
			t.Errorf("action %s has no doc", name)
		}
	}
	if want := []string{"foo.Deployment", "foo.Farewell", "foo.Status"}; !slices.Equal(r.Functions(), want) {
		t.Errorf("its functions are %v, want %v", r.Functions(), want)
	}
}

func TestCallOfAFunctionThatIsNotThere(t *testing.T) {
	nothing := func(context.Context, *dsl.Request) error { return nil }
	full := registered(t, dsl.Function{Name: "foo.Announce", Func: nothing}, dsl.Function{Name: "bar.Run", Func: nothing})
	tests := map[string]struct {
		registry *actions.Registry
		name     string
		want     string
	}{
		"nearly right": {
			full, "foo.anounce",
			`unknown function "foo.anounce" (did you mean "foo.Announce"?); registered are bar.Run, foo.Announce`,
		},
		"entirely wrong":     {full, "x", `unknown function "x"; registered are bar.Run, foo.Announce`},
		"nothing registered": {actions.NewRegistry(), "foo.Run", `unknown function "foo.Run"; none is registered`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fn, err := build(t, test.registry, test.name, nil)
			faulty, ok := errors.AsType[*shape.Misfit](err)
			if !ok || fn != nil {
				t.Fatalf("Build() = %v, want no function and a Misfit", err)
			}
			want := &shape.Misfit{Path: []string{"call"}, Message: test.want}
			if diff := cmp.Diff(want, faulty); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallChecksParameters(t *testing.T) {
	nothing := func(context.Context, *dsl.Request) error { return nil }
	tests := map[string]struct {
		prototype any
		with      dsl.Params
		want      string // "path: message" a line
	}{
		"none where none are taken":     {nil, nil, ""},
		"none where some are taken":     {params{}, nil, ""},
		"some where none are taken":     {nil, dsl.Params{"a": int64(1)}, "with: f takes no parameters"},
		"an empty map where some are":   {params{}, dsl.Params{}, ""},
		"a pointer for a prototype":     {&params{}, dsl.Params{"channel": "ops"}, ""},
		"a map for a prototype":         {map[string]int{}, dsl.Params{"a": int64(1)}, ""},
		"the wrong value in such a map": {map[string]int{}, dsl.Params{"a": "b"}, `with.a: want a whole number that fits, found the text "b"`},
		"a field of an embedded struct": {params{}, dsl.Params{"name": "x"}, ""},
		"a field without a tag":         {params{}, dsl.Params{"Plain": "x"}, ""},
		"null leaves a field as it is":  {params{}, dsl.Params{"times": nil, "to": []any{nil}}, ""},
		"a type that reads itself":      {params{}, dsl.Params{"wait": "5s"}, ""},
		"what such a type refuses":      {params{}, dsl.Params{"wait": "often"}, `with.wait: time: invalid duration "often"`},
		"anything, where all is taken":  {params{}, dsl.Params{"raw": map[string]any{"a": []any{true}}}, ""},
		"a whole number for a fraction": {params{}, dsl.Params{"ratio": int64(2)}, ""},
		"an unknown one, nearly right":  {params{}, dsl.Params{"chanel": "x"}, `with.chanel: unknown parameter (did you mean "channel"?)`},
		"a field that is not known":     {params{}, dsl.Params{"volume": "x"}, "with.volume: unknown parameter (want one of name, channel, times, size, ratio, loud, wait, to, extra, raw, Plain)"},
		"a struct with a hidden field":  {closed{hidden: "x"}, dsl.Params{"name": "x"}, ""},
		"a number for text":             {params{}, dsl.Params{"channel": int64(5)}, "with.channel: want text, found the number 5 (put it in quotes)"},
		"a number that does not fit":    {params{}, dsl.Params{"times": int64(300)}, "with.times: want a whole number that fits, found the number 300"},
		"a negative number":             {params{}, dsl.Params{"size": int64(-1)}, "with.size: want a whole number that fits, found the number -1"},
		"a fraction for a whole number": {params{}, dsl.Params{"times": 1.5}, "with.times: want a whole number that fits, found the number 1.5"},
		"text for a number":             {params{}, dsl.Params{"ratio": "2"}, `with.ratio: want a number, found the text "2"`},
		"text for a boolean":            {params{}, dsl.Params{"loud": "yes"}, `with.loud: want true or false, found the text "yes"`},
		"a map for a list":              {params{}, dsl.Params{"to": map[string]any{}}, "with.to: want a list, found a map"},
		"a list for a map":              {params{}, dsl.Params{"extra": []any{}}, "with.extra: want a map, found a list"},
		"all of them, however deep": {
			params{},
			dsl.Params{"a": "x", "extra": map[string]any{"b": "x"}, "to": []any{map[string]any{"nam": "x"}, map[string]any{"name": true}, "x"}},
			"with.a: unknown parameter (want one of name, channel, times, size, ratio, loud, wait, to, extra, raw, Plain)\n" +
				"with.extra.b: want a number, found the text \"x\"\n" +
				"with.to.0.nam: unknown parameter (did you mean \"name\"?)\n" +
				"with.to.1.name: want text, found true (put it in quotes)\n" +
				"with.to.2: want a map, found the text \"x\"",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := registered(t, dsl.Function{Name: "f", Func: nothing, Params: test.prototype})
			fn, err := build(t, r, "f", test.with)
			if got := placed(t, err); got != test.want {
				t.Errorf("faults:\n%s\nwant:\n%s", got, test.want)
			}
			if (fn == nil) != (test.want != "") {
				t.Errorf("a function was built: %v", fn != nil)
			}
		})
	}
}

// placed writes joined faults with their paths.
func placed(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var lines []string
	for _, one := range all {
		faulty, ok := errors.AsType[*shape.Misfit](one)
		if !ok {
			t.Fatalf("%v is not a Misfit", one)
		}
		lines = append(lines, strings.Join(faulty.Path, ".")+": "+faulty.Message)
	}
	return strings.Join(lines, "\n")
}

func TestCallGivesEachCallItsOwnParameters(t *testing.T) {
	var got []string
	fn := func(_ context.Context, r *dsl.Request) error {
		to := r.Params["to"].([]any)
		got = append(got, to[0].(string))
		to[0] = "changed"
		return errors.New("own error")
	}
	r := registered(t, dsl.Function{Name: "f", Func: fn, Params: struct {
		To []string `json:"to"`
	}{}})
	built, err := build(t, r, "f", dsl.Params{"to": []any{"me"}})
	if err != nil {
		t.Fatal(err)
	}
	request := &dsl.Request{Patch: dsl.NewPatch()}
	for range 2 {
		if err := built(t.Context(), request); err == nil || err.Error() != "own error" {
			t.Errorf("call returned %v, want the function's error", err)
		}
	}
	if diff := cmp.Diff([]string{"me", "me"}, got); diff != "" {
		t.Errorf("parameters seen (-want +got):\n%s", diff)
	}
	if request.Params != nil {
		t.Error("the parameters are left in the request")
	}
}

func TestCallWithoutParametersIsTheFunction(t *testing.T) {
	var seen *dsl.Request
	r := registered(t, dsl.Function{Name: "f", Func: func(_ context.Context, r *dsl.Request) error { seen = r; return nil }})
	built, err := build(t, r, "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	request := &dsl.Request{}
	if err := built(t.Context(), request); err != nil || seen != request {
		t.Errorf("call returned %v, and passed the request on: %v", err, seen == request)
	}
}

// TestCallOfADaemon holds that daemons and handlers are not taken for each other, and what a daemon gets.
func TestCallOfADaemon(t *testing.T) {
	var seen dsl.Params
	watch := func(_ context.Context, r *dsl.DaemonRequest) error {
		seen, r.Patch = r.Params, dsl.NewPatch()
		seen["to"] = "changed"
		return errors.New("own error")
	}
	takes := struct {
		To string `json:"to"`
	}{}
	r := registered(t, dsl.Function{Name: "d", Daemon: watch, Params: takes}, dsl.Function{Name: "h", Func: func(context.Context, *dsl.Request) error { return nil }})
	daemon := func(name string, with dsl.Params) (actions.Built, error) {
		action, _ := Standard().LookupAction("call")
		return action.Build(actions.Build{Registry: r, Params: with, Daemon: true}, &name)
	}
	if _, err := build(t, r, "d", nil); err == nil || !strings.Contains(err.Error(), "d is a daemon") {
		t.Errorf("a handler that calls a daemon: %v", err)
	}
	for want, call := range map[string]func() (actions.Built, error){
		"h is for handlers":              func() (actions.Built, error) { return daemon("h", nil) },
		"expressions are not worked out": func() (actions.Built, error) { return daemon("d", dsl.Params{"to": "${self.spec.to}"}) },
		"unknown parameter":              func() (actions.Built, error) { return daemon("d", dsl.Params{"too": "a"}) },
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
	}
	built, err := daemon("d", dsl.Params{"to": "me"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		request := &dsl.DaemonRequest{Patch: dsl.NewPatch()}
		request.Patch.SetStatus("a", 1)
		if err := built.Daemon(t.Context(), request); err == nil || err.Error() != "own error" {
			t.Errorf("it returns %v", err)
		}
		if !request.Patch.Empty() || request.Params != nil {
			t.Errorf("it leaves %v, %v", request.Patch, request.Params)
		}
	}
}

// TestWhatAFunctionSaysOfItsNextRunIsHandedOn holds that a function with parameters of its own can say when it is run again, and
// how far its steps have come.
func TestWhatAFunctionSaysOfItsNextRunIsHandedOn(t *testing.T) {
	for name, size := range map[string]any{"parameters": int64(1), "computed parameters": "${self.size}"} {
		t.Run(name, func(t *testing.T) {
			r := registered(t, dsl.Function{Name: "shop.Work", Params: params{}, Needs: []dsl.Need{}, Func: func(_ context.Context, r *dsl.Request) error {
				r.RunAgain(time.Minute)
				r.Step += 2
				return errors.New("not yet")
			}})
			fn, err := build(t, r, "shop.Work", dsl.Params{"size": size})
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{"size": int64(1)}}
			request := &dsl.Request{Subject: dsl.Subject{Object: object}, Step: 1}
			if err := fn(t.Context(), request); err == nil || err.Error() != "not yet" {
				t.Fatalf("error is %v", err)
			}
			if request.Step != 3 || request.Again == nil || *request.Again != time.Minute {
				t.Errorf("step is %d, to be run again after %v", request.Step, request.Again)
			}
		})
	}
}
