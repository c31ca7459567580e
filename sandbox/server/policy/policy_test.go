// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
)

// nobody has no rights.
type nobody struct{}

func (nobody) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}

// read reads YAML.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return &out
}

// creation returns the creation of a ConfigMap in a namespace that is labelled.
func creation(t *testing.T, object string) *policy.Call {
	t.Helper()
	tree := *read[map[string]any](t, object)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "a"}}}
	return &policy.Call{
		Version: policy.Version{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Object: tree,
		},
		Operation: admission.Create, Namespace: "ns", Name: (&unstructured.Unstructured{Object: tree}).GetName(), Space: space, Labels: space.Labels,
		User: &user.DefaultInfo{Name: "ann"}, Authorizer: nobody{},
	}
}

const forConfigMaps = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}`

func TestAPolicyJudges(t *testing.T) {
	tests := map[string]struct {
		spec, actions, object, param string
		want                         policy.Verdict
		refused                      string
	}{
		"an object that passes": {spec: `validations: [{expression: "true"}]`, actions: `[Deny]`},
		"an object that does not": {
			spec: `validations: [{expression: "false", message: stop}]`, actions: `[Deny]`,
			refused: `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: stop`,
		},
		"an object by its namespace and its user": {
			spec:    `validations: [{expression: "false", messageExpression: "namespaceObject.metadata.labels.team + request.userInfo.username"}]`,
			actions: `[Deny]`, refused: `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: aann`,
		},
		"an object by a parameter": {
			spec: "paramKind: {apiVersion: v1, kind: ConfigMap}\n" + `validations: [{expression: "object.data.it == params.data.it"}]`, actions: `[Deny]`,
			object: `data: {it: "1"}`, param: `{apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {it: "1"}}`,
		},
		"the right of its user": {
			spec: `validations: [{expression: "authorizer.requestResource.check('create').allowed()", message: stop}]`, actions: `[Deny]`,
			refused: `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: stop`,
		},
		"an object, and warns": {
			spec: `validations: [{expression: "false", message: mind}]`, actions: `[Warn, Audit]`,
			want: policy.Verdict{
				Warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': mind"}, Failures: []string{"mind"},
			},
		},
		"an object, and annotates": {
			spec: `auditAnnotations: [{key: k, valueExpression: "object.metadata.name + ' '"}, {key: none, valueExpression: "null"}]`, actions: `[Deny]`,
			want: policy.Verdict{Annotations: map[string][]string{"p/k": {"x"}}},
		},
		"only what its conditions name": {
			spec: "matchConditions: [{name: c, expression: \"object.metadata.name == 'y'\"}]\n" + `validations: [{expression: "false"}]`, actions: `[Deny]`,
		},
		"no object whose condition fails, if that is ignored": {
			spec: "failurePolicy: Ignore\nmatchConditions: [{name: c, expression: \"object.data.y == 'y'\"}]\n" + `validations: [{expression: "false"}]`, actions: `[Deny]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy.NewValidating(&admissionv1.ValidatingAdmissionPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: *read[admissionv1.ValidatingAdmissionPolicySpec](t, forConfigMaps+"\n"+tt.spec),
			})
			b := policy.NewValidatingBinding(&admissionv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: *read[admissionv1.ValidatingAdmissionPolicyBindingSpec](t, "policyName: p\nvalidationActions: "+tt.actions),
			})
			call := creation(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"+tt.object)
			match := p.Matches(call)
			if match.Err != nil || !match.Matches {
				t.Fatalf("the policy does not see the call: %v", match.Err)
			}
			var param runtime.Object
			if tt.param != "" {
				param = &unstructured.Unstructured{Object: *read[map[string]any](t, tt.param)}
			}
			var got policy.Verdict
			p.Validate(t.Context(), &got, call, match.Version, b, param)
			if err := got.Refusal(call); tt.refused == "" && err != nil || tt.refused != "" && (err == nil || err.Error() != tt.refused) {
				t.Errorf("the call is refused: %v", err)
			}
			if got.Denials = nil; !cmp.Equal(tt.want, got) {
				t.Error(cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestAPolicyMatches(t *testing.T) {
	tests := map[string]struct {
		constraints string
		call        func(*policy.Call)
		version     string // in which the policy sees the objects; empty if it does not
	}{
		"its rules":                    {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]`, nil, "v1"},
		"no other operation":           {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]`, nil, ""},
		"no name that it lacks":        {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: ["*"], resourceNames: [y]}]`, nil, ""},
		"nothing that is excluded":     {"resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]\nexcludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: [configmaps]}]", nil, ""},
		"by the labels of a namespace": {"namespaceSelector: {matchLabels: {team: b}}", nil, ""},
		"by the labels of the object":  {"objectSelector: {matchLabels: {a: b}}", nil, "v1"},
		"by the labels that the object had": {"objectSelector: {matchLabels: {a: c}}", func(c *policy.Call) {
			c.Old = map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "c"}}}
		}, "v1"},
		"no subresource without being asked to": {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: ["*"]}]`, func(c *policy.Call) { c.Subresource = "status" }, ""},
		"subresources":                          {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: ["*/status"]}]`, func(c *policy.Call) { c.Subresource = "status" }, "v1"},
		"another version exactly":               {"matchPolicy: Exact\nresourceRules: [{apiGroups: [''], apiVersions: [v2], operations: ['*'], resources: ['*']}]", nil, ""},
		"an equivalent version":                 {"matchPolicy: Equivalent\nresourceRules: [{apiGroups: [''], apiVersions: [v2], operations: ['*'], resources: ['*']}]", nil, "v2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy.NewValidating(&admissionv1.ValidatingAdmissionPolicy{
				Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: read[admissionv1.MatchResources](t, tt.constraints)},
			})
			call := creation(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {a: b}}}")
			call.Equivalent = []policy.Version{{Resource: call.Resource.GroupResource().WithVersion("v2"), Kind: schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}}}
			if tt.call != nil {
				tt.call(call)
			}
			got := p.Matches(call)
			if got.Err != nil || got.Matches != (tt.version != "") || got.Version.Kind.Version != tt.version {
				t.Errorf("the match is %+v", got)
			}
		})
	}
}

func TestAPolicyThatFailsSaysWhich(t *testing.T) {
	p := policy.NewMutating(&admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: *read[admissionv1.MutatingAdmissionPolicySpec](t,
		`mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data", value: {"a": object.data.b}}]'}}]`)})
	call := creation(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
	_, err := p.Mutate(t.Context(), call, call.Version, nil, 0, nil)
	if err == nil {
		t.Fatal("the mutation does not fail")
	}
	var failures policy.Failures
	p.Add(&failures, &policy.Binding{Name: "b"}, err, false)
	refusal := failures.Refusal(call)
	if !strings.HasPrefix(refusal.Error(), "policy 'p' with binding 'b' denied request: expression '") || apierrors.ReasonForError(refusal) != metav1.StatusReasonInvalid {
		t.Errorf("the refusal is %v", refusal)
	}
}
