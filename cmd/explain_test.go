// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/handlers"
)

// stocked is a bench with the stock actions.
func stocked(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.registry = handlers.Standard()
	return b
}

func TestExplainAnswersInFull(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"a field": {"resources.handlers.retries", `FIELD:      resources[].handlers[].retries <whole number>
IN:         handlers, daemons, schedule, startup, cleanup

DESCRIPTION:
    How many times the handler runs again after it failed. Absent: until it
    succeeds.
`},
		"a map with fields": {"resources.handlers.backoff", `FIELD:      resources[].handlers[].backoff <map>
IN:         handlers, daemons, schedule, startup, cleanup

DESCRIPTION:
    The wait between two attempts; it doubles from initial to max.

FIELDS:
  initial <duration> default: 1s
    The first wait.

  max <duration> default: 5m
    The longest wait.
`},
		"a required field, at the path of a fault": {"resources[0].handlers[12].set.conditions[0].type", `FIELD:      resources[].handlers[].set.conditions[].type <text>
REQUIRED:   yes

DESCRIPTION:
    The condition's type, one CamelCase word, as in Ready.
`},
		"all below, by their types": {"scope --recursive", `FIELD:      scope <map>

DESCRIPTION:
    The namespaces that the operator works in. Absent: the whole cluster. In one
    of its documents only.

FIELDS:
  namespaces <list of text>
  namespaceSelector <map>
    matchLabels <map of text>
    matchExpressions <list of maps>
      key <text> required
      operator <In, NotIn, Exists, DoesNotExist> required
      values <list of text>
`},
		"a file with cases": {"cases.steps.crash --cases", `FIELD:      cases[].steps[].crash <map>

DESCRIPTION:
    Kill the operator at a write to come, and start it again.

FIELDS:
  after <whole number> required
    The write request, counted from now, at which the operator is killed. The
    server does what it asks; the operator does not hear of it.
`},
		"a file with cases, at the path of the reference": {"test.cases.steps.crash.after", `FIELD:      cases[].steps[].crash.after <whole number>
REQUIRED:   yes

DESCRIPTION:
    The write request, counted from now, at which the operator is killed. The
    server does what it asks; the operator does not hear of it.
`},
		"a function, at the path of the reference": {"functions.pick", `  pick(map, keys): map
    The entries with these keys. A key that is not there is ignored.
      pick({"a": 1, "b": 2, "c": 3}, ["a", "c"]) → {"a":1,"c":3}
`},
		"a function": {"functions pick", `  pick(map, keys): map
    The entries with these keys. A key that is not there is ignored.
      pick({"a": 1, "b": 2, "c": 3}, ["a", "c"]) → {"a":1,"c":3}
`},
	} {
		t.Run(name, func(t *testing.T) {
			b := stocked(t)
			code := b.execute(t.Context(), append([]string{"explain"}, strings.Fields(test.args)...))
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, b.err.String())
			}
			if diff := cmp.Diff(test.want, b.out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainHas(t *testing.T) {
	for name, test := range map[string]struct {
		args string
		want []string
	}{
		"the whole configuration":              {"", []string{"FIELDS:\n  apiVersion <handwerk.dev/v1alpha1> required\n", "\n  resources <list of maps>\n"}},
		"actions of the program":               {"resources.handlers", []string{"\n  apply <map>\n    Keep children", "\n  call <text>\n"}},
		"both forms of a child":                {"resources.handlers.apply", []string{"FIELDS (options):\n  template <map or ${…}> required\n", "FIELDS (the child itself):\n  apiVersion <text> required\n"}},
		"the steps that a state shares":        {"resources.machine.states.enter", []string{"\n  set <map>\n"}},
		"every group of functions":             {"functions", []string{"Objects and maps:\n\n  ready(object): true or false\n", "\nLists:\n", "\nQuantities:\n", "\nLoops and names:\n"}},
		"a function of several kinds of value": {"functions indexOf", []string{"text.indexOf(part)", "list.indexOf(element)"}},
		"a function without its library":       {"functions abs", []string{"math.abs(-3) → 3"}},
		"all fields of everything":             {"--recursive", []string{"\n          maxUnavailable <whole number, percentage or ${…}> required\n", "  metadata <map> required\n    name <text> required\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := stocked(t)
			if code := b.execute(t.Context(), append([]string{"explain"}, strings.Fields(test.args)...)); code != exitOK {
				t.Fatalf("exit code %d: %s", code, b.err.String())
			}
			for _, want := range test.want {
				if got := b.out.String(); !strings.Contains(got, want) {
					t.Errorf("it lacks %q:\n%.3000s", want, got)
				}
			}
		})
	}
}

func TestExplainSaysWhatWasMeant(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"a mistyped field":          {"resources.handlers.retires", `unknown field "retires" in resources[].handlers[] (did you mean "retries"?)`},
		"the name in other tools":   {"resources.handlers.retry", `unknown field "retry" in resources[].handlers[] (did you mean "retries"?)`},
		"a field that is far below": {"readyWhen", `unknown field "readyWhen" (did you mean resources.handlers.apply.readyWhen or resources.handlers.steps.apply.readyWhen or resources.machine.deletion.during.apply.readyWhen?)`},
		"a field that is below":     {"handlers.retries", `unknown field "handlers" (did you mean resources.handlers.retries?)`},
		"a field of a number":       {"resources.workers.min", `resources[].workers is a whole number, and has no field "min"`},
		"a mistyped function":       {"functions merg", `unknown function "merg" (did you mean "merge"?)`},
		"a function like no other":  {"functions zzzzzz", `unknown function "zzzzzz" (operator explain functions lists them)`},
		"two paths":                 {"scope settings", `want one path, or functions and a name, found 2 arguments`},
		"two functions":             {"functions pick omit", `want one path, or functions and a name, found 3 arguments`},
	} {
		t.Run(name, func(t *testing.T) {
			b := stocked(t)
			code := b.execute(t.Context(), append([]string{"explain"}, strings.Fields(test.args)...))
			want := "error: " + test.want + "\nsee 'operator explain --help'\n"
			if diff := cmp.Diff(want, b.err.String()); diff != "" || code != exitUsage || b.out.String() != "" {
				t.Errorf("exit code %d, output %q, errors (-want +got):\n%s", code, b.out.String(), diff)
			}
		})
	}
}

func TestPathsOfExplainAreCompleted(t *testing.T) {
	const noFiles, noSpace = ":4\n", ":6\n"
	for name, test := range map[string]struct {
		args []string
		want []string
		end  string
	}{
		"a first field, to which a dot may be added": {[]string{"sett"}, []string{"settings\tSettings of the process: leader election, limits, Events."}, noSpace},
		"a field that has no others":                 {[]string{"resources.handlers.retr"}, []string{"resources.handlers.retries\tHow many times the handler runs again after it failed."}, noFiles},
		"fields of several kinds":                    {[]string{"resources.handlers.ba"}, []string{"resources.handlers.backoff\tThe wait between two attempts; it doubles from initial to max."}, noSpace},
		"a path with brackets":                       {[]string{"resources[].handlers[].after"}, []string{"resources[].handlers[].after\tThe ids of handlers before this one that must have succeeded first."}, noFiles},
		"an unknown path":                            {[]string{"zzz.a"}, nil, noFiles},
		"the word for functions":                     {[]string{"fun"}, []string{"functions\tThe functions of expressions."}, noFiles},
		"a function":                                 {[]string{"functions", "mer"}, []string{"merge"}, noFiles},
		"nothing after a path":                       {[]string{"scope", ""}, nil, noFiles},
		"a field of files with cases":                {[]string{"--cases", "con"}, []string{"config\tThe operator under test: a file or a directory beside this file, or several."}, noFiles},
	} {
		t.Run(name, func(t *testing.T) {
			b := stocked(t)
			if code := b.execute(t.Context(), append([]string{"__complete", "explain"}, test.args...)); code != exitOK {
				t.Fatalf("exit code %d: %s", code, b.err.String())
			}
			want := strings.Join(append(slices.Clone(test.want), test.end), "\n")
			if diff := cmp.Diff(want, b.out.String()); diff != "" {
				t.Errorf("completions (-want +got):\n%s", diff)
			}
		})
	}
}
