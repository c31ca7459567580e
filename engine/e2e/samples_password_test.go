// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

func TestAPasswordIsMadeOnce(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	user := plane.User("password")
	user.AllowIn(t, ns, cluster.Rule("samples.handwerk.dev", "logins", "get", "list", "watch"),
		cluster.Rule("samples.handwerk.dev", "logins/status", "patch"), made("", "secrets"), eventRule())
	launch := cluster.Launch{Main: sampleMain("password"), Config: user.Config(), Args: []string{"run", "--config", sampleFile(t, "password"), "-n", ns}}
	first := plane.Operator(t, launch)
	logins, secrets := plane.Objects("logins.v1alpha1.samples.handwerk.dev", ns), plane.Objects("secrets.v1", ns)
	logins.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "Login", "metadata": map[string]any{"name": "shop"}, "spec": map[string]any{},
	}})
	decoded := func(o *unstructured.Unstructured, key string) string {
		text, _ := field(o, "data", key).(string)
		out, _ := base64.StdEncoding.DecodeString(text)
		return string(out)
	}
	// has waits until the Secret with the address says so, and returns the password.
	has := func(user string, password func(string) bool) string {
		secrets.Await(t, "shop", "user "+user, func(o *unstructured.Unstructured) bool {
			return decoded(o, "username") == user && password(decoded(o, "password"))
		})
		secret := decoded(secrets.Get(t, "shop"), "password")
		secrets.Await(t, "shop-address", "the same password", func(o *unstructured.Unstructured) bool {
			return decoded(o, "url") == "postgres://"+user+":"+secret+"@db/app"
		})
		return secret
	}
	was := has("app", func(password string) bool { return len(password) == 24 })
	same := func(password string) bool { return password == was }
	logins.Patch(t, "shop", `{"spec":{"user":"till"}}`)
	has("till", same)
	first.Stop(t)
	mustLogNoError(t, first.Lines)
	second := plane.Operator(t, launch)
	logins.Patch(t, "shop", `{"spec":{"user":"bar"}}`)
	has("bar", same)
	logins.Patch(t, "shop", `{"metadata":{"annotations":{"samples.handwerk.dev/rotate":"2"}}}`)
	has("bar", func(password string) bool { return len(password) == 24 && password != was })
	second.Stop(t)
	mustLogNoError(t, second.Lines)
}
