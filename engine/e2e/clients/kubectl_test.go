// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// session is what a user does with kubectl.
type session struct {
	// Name is a sentence.
	Name string `json:"name"`
	// Files are beside the user, by name. In them and in the lines, $NS is the namespace of the session.
	Files map[string]string `json:"files"`
	// Run are lines for a shell. The output of each is compared, unless it begins with a minus.
	Run []string `json:"run"`
}

// verbs are what the sessions have to use.
var verbs = []string{
	"get", "describe", "apply", "apply --server-side", "edit", "patch", "patch --type=merge", "patch --type=json", "delete",
	"wait", "rollout status", "events", "explain", "label", "annotate", "scale", "diff", "api-resources",
}

// TestKubectlSaysTheSameOfBothServers does the sessions of testdata/kubectl.yaml against the real cluster and against the
// server in memory, and compares what kubectl prints, and how it exits.
func TestKubectlSaysTheSameOfBothServers(t *testing.T) {
	sessions := readSessions(t)
	genuine := newShell(t, cluster.WriteKubeconfig(t, plane.Config()))
	memory := newShell(t, cluster.WriteKubeconfig(t, inMemory(t)))
	t.Run("sessions", func(t *testing.T) {
		for _, each := range sessions {
			t.Run(each.Name, func(t *testing.T) {
				t.Parallel()
				want, got := genuine.play(t, each), memory.play(t, each)
				if diff := cmp.Diff(strings.Split(want, "\n$ "), strings.Split(got, "\n$ ")); diff != "" {
					t.Errorf("kubectl says (-real +memory):\n%s", diff)
				}
			})
		}
	})
}

// TestTheSessionsUseAllVerbs holds which commands of kubectl the sessions have.
func TestTheSessionsUseAllVerbs(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, each := range readSessions(t) {
		lines = append(lines, each.Run...)
	}
	for _, verb := range verbs {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "kubectl "+verb+" ") }) {
			t.Errorf("no session has kubectl %s", verb)
		}
	}
}

func readSessions(t *testing.T) (out []session) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "kubectl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// shell runs kubectl with a kubeconfig.
type shell struct {
	kubeconfig string
	home       string // has kubectl's cache
	path       string
}

func newShell(t *testing.T, kubeconfig string) shell {
	t.Helper()
	path := filepath.Dir(plane.Kubectl(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	return shell{kubeconfig: kubeconfig, home: t.TempDir(), path: path}
}

// play does a session in a namespace of its own, and returns what each line prints.
func (s shell) play(t *testing.T, each session) string {
	t.Helper()
	ns, dir := "session-"+rand.String(6), t.TempDir()
	for name, text := range each.Files {
		text = strings.ReplaceAll(text, "$NS", ns)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "HOME="+s.home, "PATH="+s.path, "NS="+ns, "TMPDIR="+dir)
	run := func(line string) string { return shout(t, dir, env, line) }
	text, err := os.ReadFile(s.kubeconfig)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kubeconfig"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run("kubectl config set-context --current --namespace=$NS")
	run("kubectl create namespace $NS && kubectl wait --for=create serviceaccount/default --timeout=60s")
	t.Cleanup(func() { run("kubectl delete namespace $NS --wait=false") })
	plain := newNames(ns, dir)
	var out strings.Builder
	for _, line := range each.Run {
		quiet := strings.HasPrefix(line, "-")
		said := run(strings.TrimPrefix(line, "-"))
		if !quiet {
			fmt.Fprintf(&out, "\n$ %s\n%s", strings.TrimSpace(line), plain.of(said))
		}
	}
	return out.String()
}

// shout runs a line in a shell, and returns its output and how it exits. It outlives the test's context for cleanups.
func shout(t *testing.T, dir string, env []string, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cluster.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir, command.Env = dir, env
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s(%v)\n", out, err)
	}
	return string(out)
}
