// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestValuesAreGeneratedOnceByAllThatKeepThem holds that set keeps a value in the object, and each entry of a handler with
// forEach keeps one in a child of its own.
func TestValuesAreGeneratedOnceByAllThatKeepThem(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		op, err := config.Parse("operator.yaml", []byte(`
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
- resource: apps.v1.example.com
  schema: {kind: App, spec: {users: "[]string", text: string}, status: {token: string}}
  handlers:
  - id: token
    set:
      status: {token: "${self.?status.?token.orValue(generate(16))}"}
      annotations: {example.com/salt: "${self.metadata.?annotations[?'example.com/salt'].orValue(generate(8))}"}
  - id: users
    forEach: ${self.spec.users}
    apply:
      login:
        apiVersion: v1
        kind: Secret
        metadata: {name: "${item}"}
        stringData: {token: "${self.status.token}", text: "${self.spec.text}"}
        data: {password: "${current.login.?data.?password.orValue(base64(generate(24)))}"}
`), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		c.Serve(kit.Resource{Name: apps, Kind: "App"})
		p := c.Start(op)
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {users: [a, b], text: one}}")
		c.Settle()
		values := func() [4]string {
			var out [4]string
			app := c.Get(apps, "default", "me")
			out[0], _, _ = unstructured.NestedString(app.Object, "status", "token")
			out[1] = app.GetAnnotations()["example.com/salt"]
			for i, name := range []string{"a", "b"} {
				if secret := c.Get("secrets.v1", "default", name); secret != nil {
					out[2+i], _, _ = unstructured.NestedString(secret.Object, "data", "password")
				}
			}
			return out
		}
		made := values()
		if len(made[0]) != 16 || len(made[1]) != 8 || len(made[2]) != 32 || len(made[3]) != 32 || made[2] == made[3] {
			t.Fatalf("there are %q", made)
		}
		c.Update(apps, "default", "me", func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, "two", "spec", "text"); err != nil {
				panic(err)
			}
		})
		p.Restart()
		if got := values(); got != made {
			t.Errorf("there are %q, and were %q", got, made)
		}
		p.Writes()
		c.Advance(10 * time.Minute)
		for _, w := range p.Writes() {
			t.Errorf("there is a write: %v", w)
		}
	})
}

// TestAValueThatSomebodySetsMeanwhileIsKept holds that set does not make a value over one that the cache does not show yet.
func TestAValueThatSomebodySetsMeanwhileIsKept(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		op, err := config.Parse("operator.yaml", []byte(`
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
- resource: apps.v1.example.com
  handlers:
  - id: token
    runAgainAfter: 1m
    set:
      status: {token: "${self.?status.?token.orValue(generate(16))}"}
      annotations: {example.com/salt: "${self.metadata.?annotations[?'example.com/salt'].orValue(generate(8))}"}
      spec: {key: "${self.spec.?key.orValue(generate(8))}"}
      when: {status: late, annotations: late, spec: late}
    let: {late: "now - timestamp(self.metadata.creationTimestamp) > duration('50s')"}
`), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		c.Serve(kit.Resource{Name: apps, Kind: "App"})
		c.Start(op)
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {text: one}}")
		c.Settle()
		c.HoldWatches(apps)
		c.Update(apps, "default", "me", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"example.com/salt": "mine"})
			o.Object["status"] = map[string]any{"token": "mine"}
			o.Object["spec"] = map[string]any{"key": "mine"}
		})
		c.Advance(2 * time.Minute)
		c.ReleaseWatches(apps)
		c.Advance(2 * time.Minute)
		app := c.Get(apps, "default", "me")
		token, _, _ := unstructured.NestedString(app.Object, "status", "token")
		key, _, _ := unstructured.NestedString(app.Object, "spec", "key")
		if salt := app.GetAnnotations()["example.com/salt"]; token != "mine" || key != "mine" || salt != "mine" {
			t.Errorf("the token is %q, the key %q and the salt %q", token, key, salt)
		}
	})
}
