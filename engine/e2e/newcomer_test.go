// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestTheNewcomersRoad goes the road of somebody without a clone and without a cluster, as hack/newcomer.sh types it: go install, init,
// play, kubectl apply, a change of the file and its new child, test.
func TestTheNewcomersRoad(t *testing.T) {
	t.Parallel()
	tools, operator := t.TempDir(), installed(t)
	if said := commands(t, tools, operator, "version"); !regexp.MustCompile(`(?m)^version +` + regexp.QuoteMeta(released) + `$`).MatchString(said) {
		t.Errorf("operator version says\n%s", said)
	}
	for name, program := range map[string]string{"kubectl": plane.Kubectl(t), "operator": operator} {
		if err := os.Symlink(program, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	temporary := t.TempDir()
	road := cluster.Command(t.Context(), "../../hack/newcomer.sh")
	road.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "TMPDIR="+temporary)
	if out, err := road.CombinedOutput(); err != nil {
		t.Errorf("hack/newcomer.sh: %v\n%s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("it has left %v: %v", left, err)
	}
}
