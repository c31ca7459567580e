// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox"
)

// TestEachRowOfTheDocs brings an object into each trouble that docs/troubleshooting.md has a row for, and wants the line of the row in
// the answer. So a row without a test fails, and so does a line that is said in other words.
func TestEachRowOfTheDocs(t *testing.T) {
	wanted, known := documented(t), rows()
	if len(wanted) < 25 {
		t.Errorf("the table has %d rows, want 25", len(wanted))
	}
	for title, line := range wanted {
		t.Run(title, func(t *testing.T) {
			of := known[title]
			if of == nil {
				t.Fatal("no test brings an object into this trouble")
			}
			if got := of(t); !says(got, line) {
				t.Errorf("no line says %q:\n%s", line, got)
			}
		})
	}
	for title := range known {
		if wanted[title] == "" {
			t.Errorf("the table of the docs has no row %q", title)
		}
	}
}

// says reports whether a line is in an answer. Three dots stand for a part of it.
func says(answer, want string) bool {
	line := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	return regexp.MustCompile(`(?m)^ *` + line + `$`).MatchString(answer)
}

// documented are the lines of the table, by what the object is stuck for.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "### What operator why says\n")
	table, _, _ = strings.Cut(table, "\n### ")
	out := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.Contains(cells[1], "---") || strings.Contains(cells[2], "a line of the answer") {
			continue
		}
		title := strings.TrimSpace(cells[1])
		if out[title] != "" {
			t.Errorf("two rows are called %q", title)
		}
		out[title] = strings.TrimSpace(cells[2])
	}
	return out
}

// down asks about an object while no operator runs.
func down(t *testing.T) string {
	t.Helper()
	kubeconfig := sandbox.New(t, sandbox.Options{NoWorkloads: true}).Kubeconfig()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	streams := cmd.Streams{Out: &out, Err: &out, Env: []string{"KUBECONFIG=" + kubeconfig}}
	cmd.Run(t.Context(), []string{"why", "cm/web", "--address", "unix:" + filepath.Join(t.TempDir(), "none.sock")}, streams, handlers.Standard())
	return out.String()
}
