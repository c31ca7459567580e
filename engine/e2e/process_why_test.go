// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestWhyOfARunningOperator holds that operator why says of an object in a cluster why a handler does not run, and what happened in
// order; and that it reads the object alone, with the rights of the user, once the operator has stopped.
func TestWhyOfARunningOperator(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	config := filepath.Join(t.TempDir(), "operator.yaml")
	text := strings.Replace(askedOperator, "- id: config\n", "- id: config\n        when: self.spec.value == \"go\"\n", 1)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Args: []string{"run", "--config", config, "-n", ns}})
	works := plane.Objects("works.v1.e2e.example.com", ns)
	works.Create(t, work("a", "1"))
	user := plane.User("asker")
	kubeconfig := cluster.WriteKubeconfig(t, user.Config())
	address := addressesOf(t, program).Debug
	says := func(wanted ...string) {
		t.Helper()
		eventually(t, "the answer "+strings.Join(wanted, " … "), func() (bool, string) {
			var out bytes.Buffer
			streams := cmd.Streams{Out: &out, Err: &out, Env: []string{"KUBECONFIG=" + kubeconfig}}
			cmd.Run(t.Context(), []string{"why", "works/a", "-n", ns, "--address", address, "--history"}, streams, handlers.Standard())
			rest, all := out.String(), true
			for _, want := range wanted {
				_, after, found := strings.Cut(rest, want)
				rest, all = after, all && found
			}
			return all, out.String()
		})
	}
	says("Work "+ns+"/a of operator asked: ready", "handler config does not run: its when is false: self.spec.value == \"go\" ("+config+":9), where self.spec.value is \"1\"")
	works.Patch(t, "a", `{"spec":{"value":"go"}}`)
	says("handler config ", "ran last ", "child ConfigMap "+ns+"/a of handler config, by reference: ready",
		"handler config does not run: its when is false", `spec.value: from "1" to "go"`, "handler config ran ")
	program.Stop(t)
	says("no operator listens there", `User "`+user.Name+`" cannot get resource "works"`)
	user.AllowIn(t, ns, cluster.Rule("e2e.example.com", "works", "get"))
	says("Work "+ns+"/a\n", "the operator does not answer, and this lies on the object: ", "no operator listens there")
}
