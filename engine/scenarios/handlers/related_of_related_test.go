// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// byClass selects Secrets by what a ConfigMap says, and ConfigMaps by what these Secrets have as labels.
const byClass = `{resource: foos.v1.example.com,
	related: [
		{name: class, resource: configmaps.v1, object: "${self.spec.color}"},
		{name: secrets, resource: secrets.v1, selector: {matchLabels: {class: "${related.class.data.class}"}}},
		{name: notes, resource: configmaps.v1, where: "related.secrets.exists(s, s.metadata.name == object.data.?of.orValue(''))"}],
	handlers: [{id: report, set: {status: {
		secrets: "${related.secrets.map(s, s.metadata.name).join(' ')}",
		notes: "${related.notes.map(n, n.data.text).join(' ')}"}}}]}`

// secretOf is a Secret of a class.
func secretOf(name, class string) string {
	return `{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, namespace: default, labels: {class: ` + class + `}}}`
}

// note is a ConfigMap with a text about a Secret.
func note(name, of, text string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: default}, data: {of: ` + of + `, text: ` + text + `}}`
}

// TestRelationsChooseByWhatOthersSelect holds that an owner is handled again when an object in the middle changes what is
// selected, when one at the end changes, and that what it does not select any more wakes it no more.
func TestRelationsChooseByWhatOthersSelect(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		for _, one := range []string{
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: red, namespace: default}, data: {class: gold}}`,
			secretOf("a", "gold"), secretOf("b", "tin"), note("na", "a", "about-a"), note("nb", "b", "about-b"),
		} {
			v.Create(one)
		}
		want := func(secrets, notes any) {
			t.Helper()
			v.Settle()
			v.WantField("status.secrets", secrets)
			v.WantField("status.notes", notes)
		}
		v.NextResources(byClass)
		want("a", "about-a")
		v.Update(scene.ConfigMaps, "default", "red", scene.SetField("tin", "data", "class"))
		want("b", "about-b")
		v.Update(scene.ConfigMaps, "default", "nb", scene.SetField("more", "data", "text"))
		want("b", "more")
		v.Create(secretOf("c", "tin"))
		v.Create(note("nc", "c", "about-c"))
		want("b c", "more about-c")
		v.Delete(scene.ConfigMaps, "default", "red")
		want(nil, nil) // what is selected is not known
		v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: red, namespace: default}, data: {class: gold}}`)
		want("a", "about-a")
		v.Process.Restart()
		v.Settle()
		v.Forget()
		v.Update(scene.ConfigMaps, "default", "nc", scene.SetField("unseen", "data", "text"))
		v.Advance(time.Hour)
		v.Wrote()
	})
}

// TestAChangeAtTheEndWhileTheMiddleMovesIsSeen holds that the objects at the end count as they are, whichever change comes first.
func TestAChangeAtTheEndWhileTheMiddleMovesIsSeen(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		for _, one := range []string{
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: red, namespace: default}, data: {class: gold}}`,
			secretOf("a", "gold"), note("na", "a", "about-a"),
		} {
			v.Create(one)
		}
		v.NextResources(byClass)
		v.Settle()
		v.HoldWatches(scene.ConfigMaps)
		v.Update("secrets.v1", "default", "a", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"class": "tin"}) })
		v.Settle()
		v.WantField("status.secrets", "")
		v.Update(scene.ConfigMaps, "default", "na", scene.SetField("changed", "data", "text"))
		v.Update(scene.ConfigMaps, "default", "red", scene.SetField("tin", "data", "class"))
		v.ReleaseWatches(scene.ConfigMaps)
		v.Advance(time.Minute)
		v.WantField("status.secrets", "a")
		v.WantField("status.notes", "changed")
	})
}

// TestChildrenStayWhileWhatTheyAreChosenByIsMissing holds that a relation whose middle is gone, or lacks what it is chosen by, selects
// nothing that anybody may act on, whichever way it chooses.
func TestChildrenStayWhileWhatTheyAreChosenByIsMissing(t *testing.T) {
	tests := map[string]string{
		"where":     `where: "object.data.?of.orValue('') == related.class.data.class"`,
		"a list":    `where: "object.data.?of.orValue('') == related.classes[0].data.class"`,
		"selector":  `selector: {matchLabels: {of: "${related.class.data.class}"}}`,
		"namespace": `namespace: "${related.class.data.class}"`,
	}
	class := func(key string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, namespace: default, labels: {is: class}}, data: {` + key + `: default}}`
	}
	for name, chooses := range tests {
		lacking := "other"
		if name == "a list" {
			lacking = "class" // of a list only that it is empty is known to be missing
		}
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(class("class"))
				v.Create(`{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: default, labels: {of: default}}, data: {of: default}}`)
				v.NextResources(`{resource: foos.v1.example.com, related: [
					{name: class, resource: configmaps.v1, object: "${self.spec.color}"},
					{name: classes, resource: configmaps.v1, selector: {matchLabels: {is: class}}}, {name: tokens, resource: secrets.v1, ` + chooses + `}],
					handlers: [{id: app, apply: {a: {forEach: "${related.tokens}", key: "${item.metadata.name}", template: {
						apiVersion: v1, kind: Service, metadata: {name: "${item.metadata.name}"}, spec: {ports: [{port: 80}]}}}}}]}`)
				v.Settle()
				uid := v.Get(scene.Services, "default", "token").GetUID()
				steps := []func(){
					func() { v.Delete(scene.ConfigMaps, "default", "red") }, func() { v.Process.Restart() },
					func() { v.Create(class(lacking)) }, func() { v.Update(scene.ConfigMaps, "default", "red", scene.SetField("default", "data", "class")) },
				}
				for i, step := range steps {
					step()
					v.Advance(time.Minute)
					if o := v.Get(scene.Services, "default", "token"); o == nil || o.GetUID() != uid {
						t.Fatalf("after step %d the child is %v, want the one of the beginning", i, o)
					}
				}
				v.Update(scene.ConfigMaps, "default", "red", scene.SetField("nothing", "data", "class"))
				v.Advance(time.Minute)
				if o := v.Get(scene.Services, "default", "token"); o != nil {
					t.Errorf("the child that is not chosen any more is %v", o)
				}
			})
		})
	}
}

// TestANameThatASecretGaveIsNotShown has an object that is there and lacks a field, and one that is missing.
func TestANameThatASecretGaveIsNotShown(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Create(`{apiVersion: v1, kind: Secret, metadata: {name: red, namespace: default}, data: {name: aHVzaC1odXNo}}`)
		v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: hush-hush, namespace: default}}`)
		v.NextResources(`{resource: foos.v1.example.com, related: [
			{name: secret, resource: secrets.v1, object: "${self.spec.color}"},
			{name: settings, resource: configmaps.v1, object: "${unbase64(related.secret.data.name)}"}],
			handlers: [{id: app, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "${related.settings.data.x}"}}}}]}`)
		check := func(want string) {
			t.Helper()
			v.Advance(time.Minute)
			if got := fmt.Sprint(v.Events(), v.Get(scene.Foos, "default", "web"), v.Log.Lines()); strings.Contains(got, "hush-hush") || !strings.Contains(got, want) {
				t.Errorf("want %q, without the name, in %s", want, got)
			}
		}
		check("related.settings.data is not set")
		v.Delete(scene.ConfigMaps, "default", "hush-hush")
		check("related.settings is not there")
	})
}
