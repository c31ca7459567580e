// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// observing has rules about requests that are not written, or that are only noted. PARAMS is a rule that only policies can have.
const observing = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
scope: {namespaceSelector: {matchLabels: {fort: GROUP}}}
admission:
- resource: pods.v1
  validate:
  - {id: connect, enforce: BY, operations: [connect], subresources: [exec, portforward], rule: request.name != 'stored', message: nobody connects}
- resource: configmaps.v1
  validate:
  - {id: note, enforce: BY, action: audit, rule: "self.?data.?note.orValue('') == ''", message: "a note of ${request.userInfo.username}"}
  - {id: dry, enforce: BY, rule: "request.dryRun || self.?data.?dry.orValue('') == ''", message: only as a dry run}
PARAMS
`

// limited is a rule with params.
const limited = `
- resource: services.v1
  validate:
  - {id: ports, params: {apiVersion: v1, kind: ConfigMap, name: limits}, rule: self.spec.ports.size() <= int(params.data.ports), message: "want ${params.data.ports} ports at most"}
`

// observation is a request with what comes of it. Before it, an object is applied.
type observation struct {
	attempt
	before string
	// params are those of the request besides its path.
	params string
	// audit is a part of the annotations in the audit log.
	audit string
}

// observations are requests about all rules but the one with params.
var observations = []observation{
	{attempt: attempt{"exec of a Pod is refused before the connection", "POST", "CORE/pods/stored/exec?command=sh", "", "", "nobody connects"}},
	{attempt: attempt{"forwarding of a port is refused", "POST", "CORE/pods/stored/portforward", "", "", "nobody connects"}},
	{attempt: attempt{"another Pod is looked for", "POST", "CORE/pods/other/exec?command=sh", "", "", `pods \"other\" not found`}},
	{attempt: attempt{"logs are read, not connected to", "GET", "CORE/pods/stored/log", "", "", `pods \"stored\" not found`}},
	{attempt: attempt{"a rule that audits admits, and the log has its message", "POST", "CORE/configmaps", asYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {note: x}}`, `"note":"x"`}, params: "dryRun=All", audit: "a note of"},
	{attempt: attempt{"a dry run is evaluated as such", "POST", "CORE/configmaps", asYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: dry-}, data: {dry: x}}`, `"dry":"x"`}, params: "dryRun=All"},
	{attempt: attempt{"the same without a dry run is refused", "POST", "CORE/configmaps", asYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: dry-}, data: {dry: x}}`, "only as a dry run"}},
}

const twoPorts = `{apiVersion: v1, kind: Service, metadata: {name: two}, spec: {ports: [{name: a, port: 1}, {name: b, port: 2}]}}`

// limits are requests about the rule with params.
var limits = []observation{
	{attempt: attempt{"params that do not exist refuse", "POST", "CORE/services", asYAML, twoPorts, "no params found"}, params: "dryRun=All"},
	{attempt: attempt{"params decide", "POST", "CORE/services", asYAML, twoPorts, "want 1 ports at most"}, params: "dryRun=All",
		before: "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {ports: '1'}}\n"},
	{attempt: attempt{"a change of params changes the rule", "POST", "CORE/services", asYAML, twoPorts, `"port":2`}, params: "dryRun=All",
		before: "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {ports: '2'}}\n"},
}

// TestWhatRulesSeeOfRequests holds rules about connections, dry runs, params and the audit log, by policies and by webhooks.
func TestWhatRulesSeeOfRequests(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"policy", "webhook"} {
		t.Run("by a "+by, func(t *testing.T) {
			t.Parallel()
			params, rows := "", observations
			if by == "policy" {
				params, rows = limited, slices.Concat(rows, limits)
			}
			f := newFort(t, by, strings.ReplaceAll(observing, "PARAMS", params))
			f.run(t)
			await(t, "rules are in force", func() bool {
				return strings.Contains(f.send(t, observations[0].attempt), "nobody connects") && strings.Contains(f.send(t, observations[6].attempt, "a=b"), "only as")
			})
			for _, o := range rows {
				t.Run(o.name, func(t *testing.T) { f.observe(t, o) })
			}
			f.moves(t)
		})
	}
}

// observe sends a request until its answer and the audit log are as wanted: policies and their params come into force a moment after they
// are written.
func (f *fort) observe(t *testing.T, o observation) {
	t.Helper()
	if o.before != "" {
		plane.Apply(t, f.space, o.before)
	}
	got := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the last answer:", got)
		}
	})
	await(t, fmt.Sprintf("the answer has %q, and the audit log %q", o.want, o.audit), func() bool {
		mark := plane.Mark(t)
		got = f.send(t, o.attempt, o.params)
		return strings.Contains(got, o.want) && (o.audit == "" || strings.Contains(f.audited(t, mark), o.audit))
	})
}

// audited returns the annotations of the requests about the namespace in the audit log.
func (f *fort) audited(t *testing.T, since cluster.Mark) (said string) {
	t.Helper()
	for _, w := range plane.Writes(t, "", since) {
		if w.Namespace == f.space {
			said += fmt.Sprint(w.Annotations)
		}
	}
	return said
}

// moves takes the label that the rules select off the namespace, and gives it back.
func (f *fort) moves(t *testing.T) {
	t.Helper()
	spaces := plane.Objects("namespaces.v1.", "")
	for _, step := range []struct{ label, want string }{{"null", "not found"}, {fmt.Sprintf("%q", f.group), "nobody connects"}} {
		spaces.Patch(t, f.space, fmt.Sprintf(`{"metadata": {"labels": {"fort": %s}}}`, step.label))
		await(t, "the rules follow the label of the namespace: "+step.want, func() bool { return strings.Contains(f.send(t, observations[0].attempt), step.want) })
	}
}
