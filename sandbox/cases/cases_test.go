// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/handlers"
)

// TestCasesOfAShop runs cases that are right, with every step and every expectation.
func TestCasesOfAShop(t *testing.T) {
	Run(t, "testdata/shop/shop_test.yaml", handlers.Standard())
}

// TestMistakesAreRefused holds thirteen mistakes that a real API server refuses, in its words.
func TestMistakesAreRefused(t *testing.T) {
	Run(t, "testdata/shop/mistakes_test.yaml", handlers.Standard())
}

// TestWhatIsWrongIsTold holds the failures of cases that are wrong, with the line of the case.
func TestWhatIsWrongIsTold(t *testing.T) {
	const head = "config: OPERATOR\ngiven: {apiVersion: example.com/v1, kind: Order, metadata: {name: one}, spec: {title: Tea}}\ncases:\n- name: a\n  "
	many := ""
	for i := range 30 {
		many += fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}}, ", i)
	}
	tests := map[string]struct {
		text string
		want []string // parts of the first line and the detail of each failure
	}{
		"a field has another value": {
			"expect: {objects: {configmaps/one-bill: {data: {title: Coffee}}}}",
			[]string{"a_test.yaml:5: configmaps/one-bill is not as expected (- expected, + found)\n      data:\n    -   title: Coffee\n    +   title: Tea"},
		},
		"a field is not there": {
			"expect: {objects: {configmaps/one-bill: {spec: 3}}}",
			[]string{"- spec: 3\n    + (spec is not there)"},
		},
		"an object is not there, and another has nearly its name": {
			"expect: {objects: {configmaps/one-bil: {}}}", []string{"configmaps/one-bil does not exist; did you mean configmaps/one-bill?"},
		},
		"a field of a patch is mistyped": {
			"steps: [{patch: {orders/one: {spec: {titel: Coffee}, spc: {}}}}]",
			[]string{`a_test.yaml:5: the patch of orders/one is invalid: strict decoding error: unknown field "spc" (did you mean "spec"?), unknown field "spec.titel" (did you mean "title"?)`},
		},
		"an object is there": {"expect: {objects: {configmaps/one-bill: absent}}", []string{"is there, and is expected to be absent"}},
		"a resource is mistyped": {
			"expect: {objects: {configmap/one-bill: {data: {title: Tea}}, ordrs/one: {}}}", []string{"no resource ordrs (did you mean orders?)"},
		},
		"an expression is false": {
			`expect: {cel: 'orders["one"].spec.title == "Coffee"'}`, []string{`this is false: orders["one"].spec.title == "Coffee"`},
		},
		"an expression about metadata is false": {
			`expect: {objects: {orders/one: 'self.metadata.name == "two" || self.metadata.?labels.a.hasValue()'}}`,
			[]string{"\n    self.metadata.name is \"one\"\n    self.metadata.?labels.a.hasValue() is false\n    self.metadata.labels is not set\n    spec:\n      title: Tea"},
		},
		"an expression about the metadata of a named object is false": {
			`expect: {cel: 'orders["one"].metadata.name == "two"'}`, []string{"\n    orders.one.metadata.name is \"one\"\n    orders/one:\n      spec:"},
		},
		"an expression about an object that has nothing but metadata is false": {
			"steps: [{create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}]\n  expect: {objects: {configmaps/a: self.metadata.name == 'b'}}",
			[]string{"self.metadata.name is \"a\"\n    (nothing but metadata)"},
		},
		"an expression about many objects is false": {
			"steps: [{apply: [" + many + "]}]\n  expect: {cel: configmaps.size() == 0}", []string{"    configmaps: a0, a1, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a2, a20, a21, a22, a23, a24, a25, a26, and 16 more"},
		},
		"an expression does not compile": {"expect: {cel: ordrs.size() == 1}", []string{"ordrs"}},
		"a condition has another status": {
			"expect: {conditions: {orders/one: {Applied: {status: false, reason: Paused}, Nothing: true}}}",
			[]string{"Applied is not as expected (- expected, + found)\n    - status: False\n    + status: True\n    - reason: Paused", "no condition Nothing\n    there are: "},
		},
		"a machine is in another state": {"expect: {state: {orders/one: Paid}}", []string{"the state of machine is not as expected (- expected, + found)\n    - Paid\n    + Open"}},
		"an Event was not sent":         {"expect: {events: [{reason: Renamed}]}", []string{"Event {reason: Renamed}: expected at least once, found not at all"}},
		"a line was not logged":         {"expect: {log: [{message: never}]}", []string{"log line {message: never}: expected at least once, found not at all"}},
		"a request was sent too often": {
			"expect: {requests: [{resource: configmaps, name: one-bill, atMost: 0}]}",
			[]string{"request {resource: configmaps, name: one-bill}: expected at most 0 times, found once\n    there were:"},
		},
		"a function was called with something else": {
			"expect: {calls: [{function: shop.Mail, with: {to: nobody}}]}", []string{`call of shop.Mail with {"to":"nobody"}: expected at least once, found not at all`},
		},
		"a handler fails at the end": {
			"functions: {shop.Mail: {fails: no, permanent: true}}", []string{"a_test.yaml:4: a handler fails at the end, for orders.v1.example.com/default/one"},
		},
		"a handler fails with other words": {
			"functions: {shop.Mail: {fails: no, permanent: true}}\n  expect: {failing: {mail: never}}", []string{"a_test.yaml:6: handler mail fails with other words"},
		},
		"a handler does not fail": {"expect: {failing: {mail: never}}", []string{"handler mail does not fail"}},
		"an expression never becomes true": {
			"steps: [{until: orders.size() == 2, within: 1m}]", []string{"within 1m0s it does not become true: orders.size() == 2\n    it is false\n    orders.size() is 1\n    orders: one"},
		},
		"an object never becomes ready": {"steps: [{ready: deployments/one}]", []string{"within 1h0m0s it does not become ready: deployments/one\n    it does not exist; there are no deployments"}},
		"a step is refused":             {"steps: [{delete: pods/a}]", []string{`pods "a" not found`}},
		"a step is not refused":         {"steps: [{delete: orders/one, refused: never}]", []string{"is expected to refuse this, and it does not: never"}},
		"a step is refused with other words": {
			"steps: [{delete: pods/a, refused: never}]", []string{"refuses this with other words\n    - never\n    + pods \"a\" not found"},
		},
		"no request fails": {
			"steps: [{fail: {verb: patch, resource: orders/status}}, {patch: {orders/one: {spec: {title: Coffee}}}}, {fail: {verb: patch, resource: orders/status, times: 2}}, {fail: {verb: patch, resource: secrets, with: Lost}}]",
			[]string{"a_test.yaml:5: no request has failed: the operator sent no patch of secrets.v1", "a_test.yaml:5: no request has failed: the operator sent no patch of orders.v1.example.com/status"},
		},
		"a function is mistyped": {
			"functions: {shop.Mial: {fails: no}}\n  expect: {calls: [{function: shop.Mal, times: 0}]}",
			[]string{"a_test.yaml:5: neither the program nor the operator has the function shop.Mial (did you mean shop.Mail?)", "a_test.yaml:6: neither the program nor the operator has the function shop.Mal (did"},
		},
		"a handler is mistyped": {
			"expect: {log: [{handler: maill, times: 0}, {handler: mail, times: 0}]}",
			[]string{"a_test.yaml:5: the operator has no handler maill (did you mean mail?)"},
		},
		"an object is expected to be null": {
			"expect: {objects: {configmaps/one-bill: null}}",
			[]string{"- null\n    + apiVersion: v1\n    + data:\n    +   title: Tea\n"},
		},
		"a workload is mistyped": {"steps: [{workloads: {deploymnts/one: {hold: true}}}]", []string{"no resource deploymnts (did you mean deployments?)"}},
		"a short name of a workload": {
			"workloads: {deploy/one: {hold: true}}\n  steps: [{patch: {orders/one: {spec: {web: true}}}}, {ready: deployments/one, within: 1m}]",
			[]string{"within 1m0s it does not become ready: deployments/one"},
		},
		"a crash does not come": {"steps: [{crash: {after: 1}}]", []string{"a_test.yaml:5: the operator has not crashed"}},
	}
	suite := NewSuite(handlers.Standard())
	operator, err := filepath.Abs("testdata/shop")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := parse("a_test.yaml", []byte(strings.Replace(head, "OPERATOR", operator, 1)+tt.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, failure := range suite.Test(t, f.Cases[0]) {
				got = append(got, failure.String())
			}
			if len(got) != len(tt.want) {
				t.Fatalf("failures:\n%s\nwant %d of them", strings.Join(got, "\n"), len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("failure:\n%s\nwant:\n%s", got[i], want)
				}
			}
		})
	}
}

func TestARefusedObjectOfAFileIsNamed(t *testing.T) {
	operator, err := filepath.Abs("testdata/shop")
	if err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {c: on}}}"
	if err := os.WriteFile(objects, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse(filepath.Join(filepath.Dir(objects), "a_test.yaml"), []byte("config: "+operator+"\ngiven: objects.yaml\ncases: [{name: a}]"))
	if err != nil {
		t.Fatal(err)
	}
	failures := NewSuite(handlers.Standard()).Test(t, f.Cases[0])
	if len(failures) != 1 {
		t.Fatalf("the failures are %v", failures)
	}
	for _, want := range []string{"ConfigMap b of objects.yaml: ", "cannot unmarshal bool", "on in line 3 is true"} {
		if got := failures[0].String(); !strings.Contains(got, want) {
			t.Errorf("the failure lacks %s: %s", want, got)
		}
	}
}

// TestFaultsOfFiles holds what is said of files that are no cases.
func TestFaultsOfFiles(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":                   {"", "a_test.yaml:1:1: there are no cases in here"},
		"an unknown field":          {"cases: [{name: a, step: []}]", `a_test.yaml:1:19: cases[0].step: unknown field (did you mean "steps"?)`},
		"nothing that happens":      {"cases: [{name: a, workloads: {pods/a: {hold: true}}}]", "a_test.yaml:1:9: cases[0]: nothing happens here, so the case asserts nothing: a case needs given, steps or expect"},
		"an empty expectation":      {"cases: [{name: a, given: [], expect: {}}]", "nothing happens here, so the case asserts nothing"},
		"no name":                   {"cases: [{steps: [restart]}]", "cases[0]: name is required"},
		"a name twice":              {"given: {apiVersion: v1, kind: Pod, metadata: {name: a}}\ncases:\n- name: a\n- name: a", "a_test.yaml:4:9: cases[1].name: another case has this name (in line 3)"},
		"a step that does no thing": {"cases: [{name: a, steps: [{within: 1m}]}]", "a step does one of apply, "},
		"a step that does two":      {"cases: [{name: a, steps: [{delete: a/b, advance: 1m}]}]", "a step does one thing; write advance as a step of its own"},
		"words that do not fit":     {"cases: [{name: a, steps: [{advance: 1m, refused: x}]}]", "refused is for apply, create, patch, delete only"},
		"a verb that is none":       {"cases: [{name: a, steps: [{fail: {verb: pach, resource: pods}}]}]", `unknown verb "pach" (did you mean "patch"?)`},
		"no object":                 {"cases: [{name: a, given: [{kind: Pod}]}]", "an object needs apiVersion"},
		"a file that is not there":  {"cases: [{name: a, given: nothing.yaml}]", "reading nothing.yaml: no such file or directory"},
		"a file elsewhere":          {"cases: [{name: a, steps: [{apply: /dev/zero}]}]", "cases[0].steps[0].apply: reading /dev/zero: it is not in the directory of this file, or below"},
		"a file above":              {"given: ../b.yaml\ncases: [{name: a}]", "a_test.yaml:1:8: given: reading ../b.yaml: it is not in the directory of this file, or below"},
		"a status that is none":     {"cases: [{name: a, expect: {conditions: {a/b: {Ready: maybe}}}}]", "want True, False or Unknown, found the text \"maybe\""},
		"a request that reads":      {"cases: [{name: a, expect: {requests: [{verb: get, times: 0}]}}]", `unknown write verb "get"`},
		"a request with a path":     {"cases: [{name: a, expect: {requests: [{name: pods/a, times: 0}]}}]", "cases[0].expect.requests[0].name: want the name alone"},
		"two numbers":               {"cases: [{name: a, expect: {events: [{times: 0, atMost: 1}]}}]", "cases[0].expect.events[0].atMost: times says it already"},
		"a type of Events":          {"cases: [{name: a, expect: {events: [{type: warning, times: 0}]}}]", `unknown type "warning" (did you mean "Warning"?)`},
		"no conditions":             {"cases: [{name: a, expect: {conditions: {pods/a: {}}}}]", "pods/a\"]: must not be empty"},
		"no states":                 {"cases: [{name: a, steps: [{expect: {state: {pods/a: {}}}}]}]", "pods/a\"]: must not be empty"},
		"a restart that is none":    {"cases: [{name: a, steps: [{restart: false}]}]", "cases[0].steps[0].restart: want true"},
		"a boolean of kubectl":      {"given: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {b: yes}}}\ncases: [{name: a}]", "a_test.yaml:1:74: given.metadata.labels.b: kubectl reads yes as true: write true, or put it in quotes"},
		"a key that is a boolean":   {"cases: [{name: a, steps: [{apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {off: '1'}}]}]}]", "cases[0].steps[0].apply[0].data.off: kubectl reads off as false: write false, or put it in quotes"},
		"a patch to a boolean":      {"cases: [{name: a, steps: [{refused: patch, patch: {pods/a: {data: {k: y}}}}]}]", "data.k: kubectl reads y as true"},
		"a time without a zone":     {"now: 2026-03-29T01:30:00\ncases: [{name: a}]", `a_test.yaml:1:6: now: want a time as in 2026-03-29T01:30:00+01:00, found the text "2026-03-29T01:30:00"`},
		"a time before the clock":   {"cases: [{name: a, now: 1999-12-31T23:59:59Z}]", "a_test.yaml:1:24: cases[0].now: want a time from 2000 to 2199"},
		"a time without end":        {"cases: [{name: a, now: 2200-01-01T00:00:00Z}]", "cases[0].now: want a time from 2000 to 2199"},
		"an expression unquoted":    {"cases:\n- {name: a, expect: {status: {b: ${self.spec.?list[0]}}}}", "a_test.yaml:2:34: invalid YAML: did not find expected ',' or '}' (within {…} and […] of YAML, ${…} stands in quotes)"},
		"a text before it":          {"cases:\n- {name: a, expect: {status: {b: from ${self.spec.a}}}}", "a_test.yaml:2:34: invalid YAML: did not find expected ',' or '}' (within {…} and […] of YAML, ${…} stands in quotes)"},
		"a condition with .?":       {"cases:\n- {name: 'a', wait: self.spec.?list == 1}", "a_test.yaml:2:21: invalid YAML: did not find expected ',' or '}' (within {…} and […] of YAML, a value with ?, [ or { in it stands in quotes)"},
		"a condition with brackets": {"cases:\n- name: a[0] # b\n  steps: [wait: &a self.spec.m['k'] == 1] # c", "a_test.yaml:3:20: invalid YAML: did not find expected ',' or ']' (within {…} and […] of YAML, a value with ?, [ or { in it stands in quotes)"},
		"a condition with not":      {"cases:\n- name: a\n  steps: [until: !has(deployments['web'])]", "a_test.yaml:3:18: invalid YAML: did not find expected ',' or ']' (a value that begins with ! stands in quotes)"},
		"not, in a block":           {"cases:\n- name: a\n  steps:\n  - until: !has(x)", "a_test.yaml:4:12: cases[0].steps[0].until: the tag \"!has(x)\" is not known here (a value that begins with ! stands in quotes)"},
		"a star":                    {"cases: [{name: a, steps: [{patch: {a/b: {spec: {cron: */5 * * * *}}}}]}]", "a_test.yaml:1:55: invalid YAML: did not find expected alphabetic or numeric character (a value that begins with * stands in quotes)"},
		"a choice":                  {"cases: [{name: a, wait: 'x', b: has(a) ? 1 : 2}]", "a_test.yaml:1:33: invalid YAML: did not find expected ',' or '}' (within"},
		"brackets without an end":   {"cases: [{name: a]\n  b: c[0]", "a_test.yaml:1:1: invalid YAML: did not find expected ',' or '}'"},
		"two documents":             {"cases: [{name: a}]\n---\ncases: [{name: b}]", "a_test.yaml:3:1: a file of cases has one document"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parse("a_test.yaml", []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
