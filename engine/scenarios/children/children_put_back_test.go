// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// copiesData declares a handler that keeps one child, with the data of the Foo's spec.
func copiesData(kind string, spec dsl.ChildSpec) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(strings.ToLower(kind) + "s.v1")
		foo.OnReconcile("copy", func(ctx context.Context, r *dsl.Request) error {
			data := map[string]any{}
			for key, value := range r.Object.Object["spec"].(map[string]any) {
				if text, is := value.(string); is && kind == "Secret" {
					data[key] = base64.StdEncoding.EncodeToString([]byte(text))
				} else if is {
					data[key] = text
				}
			}
			_, err := r.Children.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "web"}, "data": data}, spec)
			return err
		})
	}
}

// source is a Foo whose spec the child is made from.
const source = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {user: ann, password: hunter2}}`

// msgOf finds the message of a line.
var msgOf = regexp.MustCompile(`"msg"="([^"]*)"`)

// TestAChangedChildSaysWhatChanged holds that a child is put back only where somebody else has changed it, and that it is
// updated where it is made from something else than before; the line names the fields, and no value of a Secret.
func TestAChangedChildSaysWhatChanged(t *testing.T) {
	tests := map[string]struct {
		kind string
		spec dsl.ChildSpec
		play func(s *scene.Stage)
		// away: it is played while no process runs, so all that a process remembers is lost.
		away bool
		want []string
	}{
		"a source is rotated": {kind: "Secret", play: func(s *scene.Stage) { s.Set("secret2", "spec", "password") },
			want: []string{"updated Secret default/web: data.password"}},
		"a source is rotated while no process runs": {kind: "Secret", away: true, play: func(s *scene.Stage) { s.Set("secret2", "spec", "password") },
			want: []string{"updated Secret default/web: data.password"}},
		"a source is rotated where drift is ignored": {kind: "Secret", spec: dsl.ChildSpec{Drift: dsl.DriftIgnore},
			play: func(s *scene.Stage) { s.Set("secret2", "spec", "password") }, want: []string{"updated Secret default/web: data.password"}},
		"a source has another key": {kind: "Secret", play: func(s *scene.Stage) { s.Set("x", "spec", "more") },
			want: []string{"updated Secret default/web: data.more"}},
		"somebody changes a Secret": {kind: "Secret", play: editsByHand("Secret", "password", "c2VjcmV0Mg=="),
			want: []string{"put back Secret default/web: data.password changed by kubectl-edit"}},
		"a controller changes a Secret": {kind: "Secret", play: appliesAs("rotator", "Secret", "password", "c2VjcmV0Mg=="),
			want: []string{"put back Secret default/web: data.password changed by rotator"}},
		"somebody takes a key of a Secret away": {kind: "Secret", play: func(s *scene.Stage) {
			s.Update(scene.Secrets, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "data", "user") })
		}, want: []string{"put back Secret default/web: data.user changed"}},
		"a source is rotated, and somebody changes another key": {kind: "Secret", away: true, play: func(s *scene.Stage) {
			editsByHand("Secret", "user", "Ym9i")(s)
			s.Set("secret2", "spec", "password")
		}, want: []string{"updated Secret default/web: data.password; put back data.user changed by kubectl-edit"}},
		"a source is rotated, and somebody adds a key": {kind: "Secret", away: true, play: func(s *scene.Stage) {
			editsByHand("Secret", "mine", "Ym9i")(s)
			s.Set("secret2", "spec", "password")
		}, want: []string{"updated Secret default/web: data.password; put back data.mine added by kubectl-edit"}},
		"a template comes to another value": {kind: "ConfigMap", play: func(s *scene.Stage) { s.Set("bob", "spec", "user") },
			want: []string{"updated ConfigMap default/web: data.user"}},
		"a template comes to other values, many": {kind: "ConfigMap", play: func(s *scene.Stage) {
			s.Set(map[string]any{"a": "1", "b": "2", "c": "3", "d": "4"}, "spec")
		}, want: []string{"updated ConfigMap default/web: data.a, data.b, data.c and more"}},
		"a template has a field less": {kind: "ConfigMap", play: func(s *scene.Stage) { s.Set(map[string]any{"user": "ann"}, "spec") },
			want: []string{"updated ConfigMap default/web: data.password"}},
		"a template comes to another value of what somebody changes": {kind: "ConfigMap", away: true, play: func(s *scene.Stage) {
			editsByHand("ConfigMap", "user", "eve")(s)
			s.Set("bob", "spec", "user")
		}, want: []string{"updated ConfigMap default/web: data.user changed by kubectl-edit"}},
		"a template comes to another value beside what somebody changes": {kind: "ConfigMap", away: true, play: func(s *scene.Stage) {
			editsByHand("ConfigMap", "user", "eve")(s)
			s.Set("secret2", "spec", "password")
		}, want: []string{"updated ConfigMap default/web: data.password; put back data.user changed by kubectl-edit"}},
		"a template comes to another value beside what somebody has set alike": {kind: "ConfigMap", play: func(s *scene.Stage) {
			editsByHand("ConfigMap", "user", "ann")(s)
			s.Settle()
			s.Set("bob", "spec", "user")
		}, want: []string{"updated ConfigMap default/web: data.user"}},
		"somebody changes what a child was made from": {kind: "ConfigMap", play: func(s *scene.Stage) {
			s.Update("configmaps.v1", "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		}, want: []string{`put back ConfigMap default/web: metadata.annotations changed`}},
		"somebody deletes a child": {kind: "ConfigMap", play: func(s *scene.Stage) { s.Delete("configmaps.v1", "default", "web") },
			want: []string{"created ConfigMap default/web"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: copiesData(tt.kind, tt.spec), Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, " "+tt.kind+" default/web")
				s.Create(source)
				log()
				if tt.away {
					s.Process.Kill()
				}
				tt.play(s)
				if tt.away {
					log = scene.LaunchWithLog(s, " "+tt.kind+" default/web")
				}
				if diff := cmp.Diff(tt.want, messages(log())); diff != "" {
					t.Errorf("the log says (-want +got):\n%s", diff)
				}
			}})
		})
	}
}

// TestAChangedPodSaysWhatChanged holds the same of lists that several managers have entries of.
func TestAChangedPodSaysWhatChanged(t *testing.T) {
	image := func(manager, image string) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Apply(manager, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {spec: {containers: [{name: web, image: "`+image+`"}]}}}}`)
		}
	}
	const containers = "spec.template.spec.containers"
	tests := map[string]struct {
		policy dsl.DriftPolicy
		play   func(s *scene.Stage)
		want   []string
	}{
		"an image of the template is another one": {play: func(s *scene.Stage) { s.Resize(2) }, want: []string{"updated Deployment default/web: " + containers}},
		"and another manager has a container of its own": {play: func(s *scene.Stage) {
			s.Apply("injector", theirsWithPod)
			s.Resize(2)
		}, want: []string{"updated Deployment default/web: " + containers}},
		"somebody sets the image": {play: image("kubectl-set", "x"), want: []string{"put back Deployment default/web: " + containers + " changed by kubectl-set"}},
		"somebody sets it, and the template does so too": {policy: dsl.DriftIgnore, play: func(s *scene.Stage) {
			image("kubectl-set", "x")(s)
			s.Settle()
			s.Resize(2)
		}, want: []string{"updated Deployment default/web: " + containers + " changed by kubectl-set"}},
		"somebody adds a container": {play: func(s *scene.Stage) { s.Apply("kubectl", theirsWithPod) },
			want: []string{"put back Deployment default/web: " + containers + "[name=more] added by kubectl"}},
		"a process ends before it has put the child back": {play: func(s *scene.Stage) {
			s.Process.CrashAfter(1)
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			s.Process.Kill()
			s.Process.Restart()
		}, want: []string{"put back Deployment default/web: " + containers + " changed"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: keepsPod(tt.policy), Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, " Deployment default/web")
				s.Create(scene.Web)
				log()
				tt.play(s)
				if diff := cmp.Diff(tt.want, messages(log())); diff != "" {
					t.Errorf("the log says (-want +got):\n%s", diff)
				}
			}})
		})
	}
}

// messages are those of lines.
func messages(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, msgOf.FindStringSubmatch(line)[1])
	}
	return out
}

// editsByHand sets a key of the child's data, as kubectl edit does.
func editsByHand(kind, key, value string) func(*scene.Stage) {
	return appliesAs("kubectl-edit", kind, key, value)
}

// appliesAs sets a key of the child's data as another field manager.
func appliesAs(manager, kind, key, value string) func(*scene.Stage) {
	return func(s *scene.Stage) {
		s.Apply(manager, `{apiVersion: v1, kind: `+kind+`, metadata: {name: web, namespace: default}, data: {`+key+`: `+value+`}}`)
	}
}

// TestAChildThatTheServerWritesOtherwiseIsNotPutBack holds that a process which asks for it once more, and changes nothing,
// does not say that somebody has changed it.
func TestAChildThatTheServerWritesOtherwiseIsNotPutBack(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: copiesData("ConfigMap", dsl.ChildSpec{}), Play: func(s *scene.Stage) {
		s.Rewrite("configmaps.v1", func(o *unstructured.Unstructured) {
			if data, is := o.Object["data"].(map[string]any); is {
				data["user"] = "ANN"
			}
		})
		scene.LaunchWithLog(s, "")
		s.Create(source)
		s.Settle()
		s.Process.Kill()
		log := scene.LaunchWithLog(s, " ConfigMap default/web")
		if got := log(); len(got) > 0 {
			t.Errorf("the log says %q", got)
		}
	}})
}
