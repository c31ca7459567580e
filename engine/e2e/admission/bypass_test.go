// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/handlers"
)

// fortress has a kind with two versions, and rules in the namespaces with a label. BY says who evaluates them.
const fortress = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
scope: {namespaceSelector: {matchLabels: {fort: GROUP}}}
resources:
- resource: foos.v2.GROUP
  schema:
    kind: Foo
    spec: {size: integer, color: string}
    status: {level: integer}
    versions: [{name: v1, spec: {replicas: integer, color: string}, convert: {move: {spec.replicas: spec.size}}}]
  validate:
  - {id: size, enforce: BY, rule: "self.spec.?size.orValue(0) <= 10", message: it is too large}
  - {id: level, enforce: BY, subresources: [status], rule: "self.status.?level.orValue(0) <= 10", message: its level is too high}
  - {id: keep, enforce: BY, operations: [delete], rule: "self.spec.?color.orValue('') != 'red'", message: red ones stay}
  - {id: name, enforce: BY, operations: [create], rule: "!self.metadata.name.startsWith('bad')", message: its name is bad}
- resource: events.v1
  selector: {fields: type=Warning}
  validate: [{id: text, enforce: BY, rule: self.message != 'bad', message: its text is bad}]
admission:
- resource: configmaps.v1
  selector: {matchLabels: {guarded: "yes"}}
  validate: [{id: data, enforce: BY, rule: "self.?data.?x.orValue('') != 'bad'", message: the data is bad}]
- resource: deployments.v1.apps
  validate: [{id: scale, enforce: BY, subresources: [scale], rule: self.spec.replicas <= 3, message: these are too many}]
- resource: statefulsets.v1.apps
  mutate: [{id: lower, enforce: BY, subresources: [scale], when: self.spec.replicas > 3, set: {spec: {replicas: 3}}}]
- resource: pods.v1
  validate: [{id: debug, enforce: BY, subresources: [ephemeralcontainers], rule: 'false', message: no debugging}]
`

// fortObjects exist from the beginning.
const fortObjects = `
{apiVersion: GROUP/v2, kind: Foo, metadata: {name: stored}, spec: {size: 1, color: red}}
---
{apiVersion: GROUP/v2, kind: Foo, metadata: {name: going, finalizers: [example.com/mine]}, spec: {size: 1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: stored, labels: {guarded: "yes"}}, data: {x: good}}
---
{apiVersion: v1, kind: Event, metadata: {name: stored}, type: Warning, message: good, involvedObject: {namespace: SPACE}}
---
{apiVersion: v1, kind: Pod, metadata: {name: stored}, spec: {containers: [{name: a, image: b}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: stored}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {
  metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: stored}, spec: {replicas: 0, selector: {matchLabels: {a: c}}, template: {
  metadata: {labels: {a: c}}, spec: {containers: [{name: a, image: b}]}}}}
`

const (
	asYAML      = "application/yaml"
	asJSONPatch = "application/json-patch+json"
	asMerge     = "application/merge-patch+json"
	asStrategic = "application/strategic-merge-patch+json"
	asApply     = "application/apply-patch+yaml"
)

// attempt is a request that would break a rule, and a part of the answer.
type attempt struct{ name, method, at, kind, body, want string }

// attempts are ways round a rule that somebody might try. V1 and V2 are the paths of Foos, CORE and APPS those of other kinds.
var attempts = []attempt{
	{"a creation in another version", "POST", "V1", asYAML, `{apiVersion: GROUP/v1, kind: Foo, metadata: {name: new}, spec: {replicas: 11}}`, "it is too large"},
	{"a merge patch in another version", "PATCH", "V1/stored", asMerge, `{"spec": {"replicas": 11}}`, "it is too large"},
	{"an apply in another version", "PATCH", "V1/stored?fieldManager=a&force=true", asApply, `{apiVersion: GROUP/v1, kind: Foo, metadata: {name: stored}, spec: {replicas: 11}}`, "it is too large"},
	{"a deletion in another version", "DELETE", "V1/stored", asYAML, "", "red ones stay"},
	{"a JSON patch", "PATCH", "V2/stored", asJSONPatch, `[{"op": "replace", "path": "/spec/size", "value": 11}]`, "it is too large"},
	{"an apply that creates", "PATCH", "V2/new?fieldManager=a", asApply, `{apiVersion: GROUP/v2, kind: Foo, metadata: {name: new}, spec: {size: 11}}`, "it is too large"},
	{"a PUT", "PUT", "CORE/configmaps/stored", asYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {name: stored}, data: {x: bad}}`, "the data is bad"},
	{"a patch of an ephemeral container", "PATCH", "CORE/pods/stored/ephemeralcontainers", asStrategic, `{"spec": {"ephemeralContainers": [{"name": "x", "image": "y"}]}}`, "no debugging"},
	{"a strategic merge patch", "PATCH", "CORE/configmaps/stored", asStrategic, `{"data": {"x": "bad"}}`, "the data is bad"},
	{"a generated name", "POST", "V2", asYAML, `{apiVersion: GROUP/v2, kind: Foo, metadata: {generateName: bad-}, spec: {}}`, "its name is bad"},
	{"a deletion of all objects", "DELETE", "V2", asYAML, "", "red ones stay"},
	{"the status in another version", "PATCH", "V1/stored/status", asMerge, `{"status": {"level": 11}}`, "its level is too high"},
	{"the status with a PUT", "PUT", "V2/stored/status", asYAML, `{apiVersion: GROUP/v2, kind: Foo, metadata: {name: stored, resourceVersion: STORED}, status: {level: 11}}`, "its level is too high"},
	{"the scale", "PATCH", "APPS/deployments/stored/scale", asMerge, `{"spec": {"replicas": 4}}`, "these are too many"},
	{"a change that takes the label away", "PATCH", "CORE/configmaps/stored", asMerge, `{"metadata": {"labels": null}, "data": {"x": "bad"}}`, "the data is bad"},
	{"a change of the field that selects", "PATCH", "CORE/events/stored", asMerge, `{"type": "Normal", "message": "bad"}`, "its text is bad"},
	{"a scale that claims to be deleted", "PATCH", "APPS/statefulsets/stored/scale", asMerge, `{"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"replicas": 9}}`, `"spec":{"replicas":3}`},
	{"a change of an object that is being deleted", "PATCH", "V2/going", asMerge, `{"spec": {"size": 11}}`, "it is too large"},
}

// fort is an operator, and the namespace that its rules are about.
type fort struct {
	by, group, own, space string
	op                    *dsl.Operator
}

func newFort(t *testing.T, by, text string) *fort {
	t.Helper()
	f := &fort{by: by, group: "fort-" + rand.String(6) + ".example.com", own: plane.Namespace(t), space: plane.Namespace(t)}
	plane.Objects("namespaces.v1.", "").Patch(t, f.space, fmt.Sprintf(`{"metadata": {"labels": {"fort": %q}}}`, f.group))
	var err error
	text = strings.NewReplacer("NAME", "fort-"+f.own, "GROUP", f.group, "BY", by).Replace(text)
	if f.op, err = config.Parse("fort.yaml", []byte(text), handlers.Standard()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeWebhooks(t, f.op, plane.Config(), f.own) })
	if err := crd.Install(t.Context(), f.op, plane.Config(), crd.Settings{Log: testLog(t, "crd")}); err != nil {
		t.Fatal(err)
	}
	return f
}

// run runs the operator.
func (f *fort) run(t *testing.T) (stop func()) {
	return background(t, func(ctx context.Context) { engineOf(ctx, t, f.op, plane.Config(), f.own) })
}

// fill creates the objects.
func (f *fort) fill(t *testing.T) {
	t.Helper()
	plane.Apply(t, f.space, strings.NewReplacer("GROUP", f.group, "SPACE", f.space).Replace(fortObjects))
	foos := plane.Objects("foos.v2."+f.group, f.space)
	foos.Delete(t, "going")
	t.Cleanup(func() { foos.Patch(t, "going", `{"metadata": {"finalizers": null}}`) })
}

// send sends a request, and returns the answer.
func (f *fort) send(t *testing.T, a attempt, params ...string) string {
	t.Helper()
	in := "/namespaces/" + f.space
	at := strings.NewReplacer(
		"V1", "/apis/"+f.group+"/v1"+in+"/foos", "V2", "/apis/"+f.group+"/v2"+in+"/foos", "CORE", "/api/v1"+in, "APPS", "/apis/apps/v1"+in,
	).Replace(a.at)
	body := strings.ReplaceAll(a.body, "GROUP", f.group)
	if strings.Contains(body, "STORED") {
		body = strings.ReplaceAll(body, "STORED", fmt.Sprintf("%q", plane.Objects("foos.v2."+f.group, f.space).Get(t, "stored").GetResourceVersion()))
	}
	request := plane.Kubernetes().Discovery().RESTClient().Verb(a.method).RequestURI(at).SetHeader("Content-Type", a.kind)
	for _, param := range params {
		if key, value, found := strings.Cut(param, "="); found {
			request.Param(key, value)
		}
	}
	if body != "" {
		request.Body([]byte(body))
	}
	answer, _ := request.Do(t.Context()).Raw() // the answer has the error
	return string(answer)
}

// TestNothingLeadsAroundARule tries to break rules while the operator runs, while it does not, and while it starts again.
func TestNothingLeadsAroundARule(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"policy", "webhook"} {
		t.Run("by a "+by, func(t *testing.T) {
			t.Parallel()
			f := newFort(t, by, fortress)
			stop := f.run(t)
			f.fill(t)
			for _, a := range attempts {
				t.Run(a.name, func(t *testing.T) {
					await(t, "the rule is in force", func() bool { return strings.Contains(f.send(t, a, "dryRun=All"), a.want) })
					if got := f.send(t, a); !strings.Contains(got, a.want) {
						t.Errorf("the answer is %s, want %s", got, a.want)
					}
				})
			}
			stop()
			f.refuses(t, "while the operator is down")
			defer f.run(t)()
			for back := false; !back; back = strings.Contains(f.send(t, attempts[0]), attempts[0].want) {
				f.refuses(t, "while the operator starts")
			}
		})
	}
}

// refuses checks that all attempts come to nothing, and that policies hold. Other versions are not readable without the operator.
func (f *fort) refuses(t *testing.T, when string) {
	t.Helper()
	for _, a := range attempts {
		got := f.send(t, a)
		failed := strings.Contains(got, `"status":"Failure"`) && (f.by == "webhook" || strings.Contains(got, "conversion webhook"))
		if !failed && !strings.Contains(got, a.want) {
			t.Errorf("%s: %s: the answer is %s", when, a.name, got)
		}
	}
}
