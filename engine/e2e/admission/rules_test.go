// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox"
)

// rules are the rules of one kind; enforce says who evaluates them.
const rules = `
  - resource: KIND.v1.GROUP
    schema:
      kind: TYPE
      spec: {size: integer, color: string, tags: "[]string", owner: string, limits: "map[string]integer"}
    mutate:
      - id: owner
        enforce: ENFORCE
        when: "!has(self.spec.owner)"
        set:
          labels: {by/size: "s-${string(self.spec.?size.orValue(0))}"}
          annotations: {note: "${request.operation}"}
          spec: {owner: "${request.userInfo.username}", color: null}
          when: {spec.color: "self.spec.?color.orValue('') == 'none'"}
      - id: limits
        enforce: ENFORCE
        when: self.spec.?size.orValue(0) > 7
        set: {spec: {limits: {cpu: "${self.spec.size * 2}", memory: 1}}}
    validate:
      - id: size
        enforce: ENFORCE
        rule: self.spec.size >= 0
        message: "size of ${self.metadata.name} is ${self.spec.size}"
      - id: color
        enforce: ENFORCE
        when: has(self.spec.color)
        rule: self.spec.color in ['red', 'blue', 'none']
        reason: Forbidden
      - id: tags
        enforce: ENFORCE
        labels: {strict: "yes"}
        rule: self.spec.?tags.orValue([]).all(t, t.size() < 4)
        message: a tag is too long
      - id: many
        enforce: ENFORCE
        rule: self.spec.?tags.orValue([]).size() < 3
        message: many tags
        action: warn
      - id: grow
        enforce: ENFORCE
        operations: [update]
        rule: old.spec.size <= self.spec.size
        message: it shrinks
      - id: keep
        enforce: ENFORCE
        operations: [delete]
        rule: self.spec.?color.orValue('') != 'red'
        message: red ones stay
`

// guard is an operator with the same rules for two kinds: by policies for one, by webhooks for the other.
type guard struct {
	client   dynamic.Interface
	group    string
	warnings *warnings
	// versions are the resource versions of the objects stored, by resource.
	versions map[string]string
}

// newGuard starts the operator against a server, and waits until its rules are in force.
func newGuard(t *testing.T, to *rest.Config, namespace string) *guard {
	t.Helper()
	group := strings.ToLower(fmt.Sprintf("r%d.example.com", rand.Int64()))
	text := "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: guard}\nresources:\n"
	for _, one := range []string{"policed/Policed/policy", "hooked/Hooked/webhook"} {
		part := strings.Split(one, "/")
		text += strings.NewReplacer("KIND", part[0], "TYPE", part[1], "ENFORCE", part[2], "GROUP", group).Replace(rules)
	}
	op, err := config.Parse("rules.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	runOperator(t, op, to, namespace)
	g := &guard{group: group, warnings: &warnings{}, versions: map[string]string{}}
	mine := rest.CopyConfig(to)
	mine.WarningHandler, mine.QPS = g.warnings, -1
	if g.client, err = dynamic.NewForConfig(mine); err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"policed", "hooked"} {
		g.awaitRules(t, resource)
	}
	return g
}

// awaitRules waits until each rule about a resource is in force.
func (g *guard) awaitRules(t *testing.T, resource string) {
	t.Helper()
	o := g.object(resource, "stored", map[string]any{"spec": map[string]any{"size": int64(3), "color": "red", "owner": "me"}})
	made, err := g.resource(resource).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.versions[resource] = made.GetResourceVersion()
	spec := func(key string, value any) map[string]any {
		return map[string]any{"strict": true, "spec": map[string]any{"size": int64(3), "owner": "me", key: value}}
	}
	for _, tc := range []struct {
		content map[string]any
		update  bool
		want    string
	}{
		{spec("size", int64(-1)), false, "size of"}, {spec("color", "green"), false, "want self.spec.color"}, {spec("tags", []any{"long tag"}), false, "too long"},
		{spec("tags", []any{"a", "b", "c"}), false, "many tags"}, {spec("size", int64(1)), true, "it shrinks"},
		{map[string]any{"spec": map[string]any{"size": int64(3)}}, false, "by/size"}, {spec("size", int64(8)), false, "limits"},
	} {
		await(t, resource+" has a rule that says "+tc.want, func() bool { return strings.Contains(g.try(resource, tc.content, tc.update), tc.want) })
	}
	await(t, resource+" has a rule about deletions", func() bool {
		err := g.resource(resource).Delete(t.Context(), "stored", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "red ones stay")
	})
}

// await polls, because a real API server begins to enforce policies and webhooks a moment after they are written.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.Patience, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// runOperator installs the CRDs of an operator and runs it until the end of the test. Then its webhooks go, which nobody would answer.
func runOperator(t *testing.T, op *dsl.Operator, to *rest.Config, namespace string) {
	t.Helper()
	t.Cleanup(func() { removeWebhooks(t, op, to, namespace) })
	if err := crd.Install(t.Context(), op, to, crd.Settings{Log: logr.Discard()}); err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) { engineOf(ctx, t, op, to, namespace) })
}

// removeWebhooks deletes the webhook configurations of an operator.
func removeWebhooks(t *testing.T, op *dsl.Operator, to *rest.Config, namespace string) {
	client := dynamic.NewForConfigOrDie(to)
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		mine := metav1.ListOptions{LabelSelector: policy.OperatorLabel + "=" + policy.Label(op, namespace)}
		if err := client.Resource(gvr).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, mine); err != nil {
			t.Errorf("deleting %s: %v", resource, err)
		}
	}
}

// engineOf runs an operator until ctx ends.
func engineOf(ctx context.Context, t *testing.T, op *dsl.Operator, to *rest.Config, namespace string) {
	e, err := engine.New(op, engine.Settings{
		Config: to, Log: testLog(t, op.Name), Namespace: namespace, Identity: "a", PodName: "a", Webhooks: engine.Webhooks{Address: "127.0.0.1:0"},
	})
	if err == nil {
		err = e.Run(ctx)
	}
	if err != nil {
		t.Errorf("running the operator: %v", err)
	}
}

// object returns an object of a kind. The flag strict in the content is a label.
func (g *guard) object(resource, name string, content map[string]any) *unstructured.Unstructured {
	kind := map[string]string{"policed": "Policed", "hooked": "Hooked"}[resource]
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": g.group + "/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": content["spec"]}}
	if content["strict"] == true {
		o.SetLabels(map[string]string{"strict": "yes"})
	}
	return o.DeepCopy()
}

func (g *guard) resource(resource string) dynamic.ResourceInterface {
	return g.client.Resource(schema.GroupVersionResource{Group: g.group, Version: "v1", Resource: resource}).Namespace("default")
}

// try sends a dry run of a creation, or of an update of the object stored, and returns what comes of it: the object, or the refusal, with
// warnings.
func (g *guard) try(resource string, content map[string]any, update bool) string {
	g.warnings.take()
	dry := []string{metav1.DryRunAll}
	var got *unstructured.Unstructured
	var err error
	if !update {
		got, err = g.resource(resource).Create(context.Background(), g.object(resource, "a", content), metav1.CreateOptions{DryRun: dry})
	} else {
		o := g.object(resource, "stored", content)
		o.SetResourceVersion(g.versions[resource])
		got, err = g.resource(resource).Update(context.Background(), o, metav1.UpdateOptions{DryRun: dry})
	}
	return told(got, err, g.warnings.take()...)
}

// told describes an answer without what differs between policies and webhooks.
func told(o *unstructured.Unstructured, err error, warnings ...string) string {
	var out []string
	if status, is := errors.AsType[*apierrors.StatusError](err); is {
		s := status.ErrStatus
		out = append(out, fmt.Sprintf("%d %s %s", s.Code, s.Reason, after(s.Message)))
	} else if err != nil {
		out = append(out, err.Error())
	}
	if o != nil {
		data, _ := json.Marshal(map[string]any{"spec": o.Object["spec"], "labels": o.GetLabels(), "annotations": o.GetAnnotations()})
		out = append(out, string(data))
	}
	for _, text := range warnings {
		out = append(out, "warning: "+after(text))
	}
	return strings.Join(out, "\n")
}

// after returns the message of a rule, without who says it.
func after(text string) string {
	for _, mark := range []string{"denied request: ", "denied the request: "} {
		if _, message, found := strings.Cut(text, mark); found {
			return message
		}
	}
	if _, message, found := strings.Cut(text, "' with binding '"); found {
		_, message, _ = strings.Cut(message, "': ")
		return message
	}
	return text
}

// random returns the content of an object.
func random(r *rand.Rand) map[string]any {
	spec := map[string]any{"size": r.Int64N(14) - 3}
	if r.IntN(3) > 0 {
		spec["color"] = []string{"red", "blue", "none", "green"}[r.IntN(4)]
	}
	if r.IntN(3) == 0 {
		spec["owner"] = "me"
	}
	var tags []any
	for range r.IntN(5) {
		tags = append(tags, strings.Repeat("x", 1+r.IntN(4)))
	}
	if tags != nil {
		spec["tags"] = tags
	}
	return map[string]any{"spec": spec, "strict": r.IntN(2) == 0}
}

// TestARuleIsTheSameAsPolicyAndAsWebhook holds that it does not matter who evaluates a rule, nor whether the server is a real one.
func TestARuleIsTheSameAsPolicyAndAsWebhook(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"the real server", "the sandbox"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			to, namespace := plane.Config(), ""
			if server == "the sandbox" {
				to, namespace = sandbox.New(t, sandbox.Options{}).Config(), "default"
			} else {
				namespace = plane.Namespace(t)
			}
			g := newGuard(t, to, namespace)
			r := rand.New(rand.NewPCG(1, 2))
			denied, changed, answers := 0, 0, map[string]string{}
			for i := range 1000 {
				content, update := random(r), i%3 == 0
				may, warns := failing(content, update)
				for _, resource := range []string{"policed", "hooked"} {
					got := g.try(resource, content, update)
					if said := strings.HasPrefix(got, "4"); said != (len(may) > 0) || said && !slices.Contains(may, strings.Split(got, "\n")[0]) {
						t.Fatalf("%s: object %d, %v (update: %v): the answer is %s, want one of %v", resource, i, content, update, got, may)
					}
					if strings.Contains(got, "warning: many tags") != warns && len(may) == 0 {
						t.Fatalf("%s: object %d, %v: the answer is %s, and it should warn: %v", resource, i, content, got, warns)
					}
					answers[resource] = got
				}
				if len(may) > 0 {
					denied++
					continue
				}
				if strings.Contains(answers["policed"], "limits") {
					changed++
				}
				if diff := cmp.Diff(answers["policed"], answers["hooked"]); diff != "" {
					t.Fatalf("object %d, %v (update: %v) (-policy +webhook):\n%s", i, content, update, diff)
				}
			}
			if denied < 100 || changed < 50 {
				t.Errorf("only %d of 1,000 objects were refused, and %d had limits set", denied, changed)
			}
		})
	}
}

// failing returns the refusals of the rules that an object breaks, of which an API server reports any one, and whether it is warned of.
func failing(content map[string]any, update bool) (refusals []string, warns bool) {
	spec := content["spec"].(map[string]any)
	size, color := spec["size"].(int64), spec["color"]
	tags, _ := spec["tags"].([]any)
	if size < 0 {
		name := map[bool]string{true: "stored", false: "a"}[update]
		refusals = append(refusals, fmt.Sprintf("422 Invalid size of %s is %d", name, size))
	}
	if color == "green" {
		refusals = append(refusals, "403 Forbidden want self.spec.color in ['red', 'blue', 'none']")
	}
	if content["strict"] == true && slices.ContainsFunc(tags, func(tag any) bool { return len(tag.(string)) > 3 }) {
		refusals = append(refusals, "422 Invalid a tag is too long")
	}
	if update && size < 3 {
		refusals = append(refusals, "422 Invalid it shrinks")
	}
	return refusals, len(tags) > 2
}
