// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestStart types what docs/start.md says, in its order, and holds that each command says what the page shows.
func TestStart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newBeginner(t)
	for _, block := range regexp.MustCompile("(?s)```(console|diff|log)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		switch kind, text := block[1], block[2]; kind {
		case "diff":
			b.edits(text)
		case "log":
			b.reads(text)
		default:
			for one := range strings.SplitSeq("\n"+text, "\n$ ") {
				if command, shown, _ := strings.Cut(one, "\n"); command != "" {
					b.types(command, shown)
				}
			}
		}
	}
	if b.typed < 20 || b.run != nil {
		t.Errorf("%d commands were typed, and an operator runs in the end: %v", b.typed, b.run != nil)
	}
}

// beginner is somebody who follows docs/start.md.
type beginner struct {
	t       *testing.T
	dir, ns string
	env     []string
	typed   int
	// kubeconfig is the present one, and own that of the cluster.
	kubeconfig, own string
	// run is the operator in the first terminal, read is how many lines of its log were read.
	run  *cluster.Operator
	read int
}

// newBeginner gives somebody a folder, a namespace in the place of default, and the programs.
func newBeginner(t *testing.T) *beginner {
	t.Helper()
	b := &beginner{t: t, dir: t.TempDir(), ns: plane.Namespace(t)}
	tools := t.TempDir()
	for name, program := range map[string]string{"kubectl": plane.Kubectl(t), "operator": plane.Program(t, "cmd/operator", false)} {
		if err := os.Symlink(program, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.env = []string{
		"HOME=" + t.TempDir(), "PATH=" + tools + ":" + os.Getenv("PATH"),
		"HANDWERK_ZAP_ENCODER=console", // as on a terminal
	}
	b.own = cluster.WriteKubeconfig(t, plane.Config())
	b.kubeconfig = b.own
	b.shell("kubectl config set-context --current --namespace=" + b.ns)
	return b
}

// types types a command, and holds that it says what is shown. A command that only looks is typed until it does.
func (b *beginner) types(command, shown string) {
	b.t.Helper()
	b.typed++
	first, rest, _ := strings.Cut(command, " ")
	second, _, _ := strings.Cut(rest, " ")
	looks := first == "curl" || first == "kubectl" && (second == "get" || second == "wait")
	if first == "operator" && (second == "test" || second == "run" || second == "cleanup") {
		b.interrupts()
	}
	switch {
	case first == "operator" && (second == "run" || second == "play"):
		b.starts(strings.Fields(rest))
		b.reads(shown)
		return
	case first == "export":
		_, b.kubeconfig, _ = strings.Cut(b.run.Await(b.t, command[:strings.Index(command, "…")]), "=")
		return
	case first == "unset":
		b.kubeconfig = b.own
		return
	}
	pattern := patternOf(shown)
	if !looks {
		if said := b.masked(b.shell(command)); !pattern.MatchString(said) {
			b.t.Fatalf("$ %s says\n%s\nand the page shows\n%s", command, said, shown)
		}
		return
	}
	eventually(b.t, fmt.Sprintf("what the page shows of %s:\n%s", command, shown), func() (bool, string) {
		said := b.masked(b.shell(command))
		return pattern.MatchString(said), "it says\n" + said
	})
}

// shell runs a command, and returns what it says.
func (b *beginner) shell(command string) string {
	b.t.Helper()
	if path, ok := strings.CutPrefix(strings.ReplaceAll(command, "'", ""), "curl -s localhost:8081"); ok {
		_, body, _ := b.probe(path)
		return body
	}
	shell := cluster.Command(b.t.Context(), "sh", "-c", strings.ReplaceAll(command, "--namespace default", "--namespace "+b.ns))
	shell.Dir, shell.Env = b.dir, append(append(os.Environ(), b.env...), "KUBECONFIG="+b.kubeconfig)
	out, _ := shell.CombinedOutput() // a failure says why, which the page shows or not
	return string(out)
}

// starts starts the operator, and returns when run can serve.
func (b *beginner) starts(args []string) {
	b.t.Helper()
	for i, arg := range args {
		if strings.HasPrefix(arg, "webapp") {
			args[i] = filepath.Join(b.dir, arg)
		}
	}
	b.read = 0
	b.run = plane.Operator(b.t, cluster.Launch{Args: args, Env: append(slices.Clone(b.env), "KUBECONFIG="+b.kubeconfig)})
	if args[0] == "play" {
		return
	}
	eventually(b.t, "/readyz", func() (bool, string) {
		code, body, err := b.probe("/readyz")
		return code == http.StatusOK, fmt.Sprint(body, err)
	})
}

// interrupts presses Ctrl-C in the first terminal.
func (b *beginner) interrupts() {
	b.t.Helper()
	if b.run == nil {
		return
	}
	b.run.Signal(b.t, os.Interrupt)
	if exit := b.run.Wait(b.t); exit.Code != 0 {
		b.t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(b.t, b.run.Lines)
	b.run = nil
}

// probe asks the operator where it serves its probes.
func (b *beginner) probe(path string) (code int, body string, err error) {
	b.t.Helper()
	at := regexp.MustCompile(`"health": "([^"]+)"`).FindStringSubmatch(b.run.Await(b.t, `"health": `))
	return ask(b.t, at[1], path)
}

// reads reads lines in the first terminal, where others may be between them.
func (b *beginner) reads(shown string) {
	b.t.Helper()
	for line := range strings.Lines(shown) {
		pattern := patternOf(line)
		eventually(b.t, "a line of the log: "+line, func() (bool, string) {
			all := b.run.All()
			for i := b.read; i < len(all); i++ {
				if pattern.MatchString(b.masked(all[i])) {
					b.read = i + 1
					return true, ""
				}
			}
			return false, strings.Join(all[b.read:], "\n")
		})
	}
}

// edits changes a file, which the first line names: the lines without a plus become those without a minus.
func (b *beginner) edits(diff string) {
	b.t.Helper()
	name, lines, _ := strings.Cut(diff, "\n")
	file := filepath.Join(b.dir, strings.TrimPrefix(name, "# "))
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	var before, after string
	for line := range strings.Lines(lines) {
		if line[0] != '+' {
			before += line[1:]
		}
		if line[0] != '-' {
			after += line[1:]
		}
	}
	if strings.Count("\n"+string(text), "\n"+before) != 1 {
		b.t.Fatalf("%s has not once\n%s", file, before)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), before, after, 1)), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

var (
	anyTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	anyHealth = regexp.MustCompile(`"health": "[^"]+"`)
	anyPeriod = regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h))+\b`)
	anyBlank  = regexp.MustCompile(`[ \t]+`)
)

// masked is a text without what differs each time.
func (b *beginner) masked(text string) string {
	return masked(strings.ReplaceAll(text, b.dir+"/", ""), b.ns)
}

// masked is a text without what differs each time: times, periods, the width of columns, the address of the probes and the namespace.
func masked(text, ns string) string {
	text = strings.ReplaceAll(text, ns, "default")
	text = anyHealth.ReplaceAllString(text, `"health": "ADDRESS"`)
	text = anyPeriod.ReplaceAllString(anyTime.ReplaceAllString(text, "TIME"), "PERIOD")
	return strings.TrimSpace(anyBlank.ReplaceAllString(text, " "))
}

// patternOf is what a page shows as a pattern: … is anything in a line, and alone in one any number of lines.
func patternOf(shown string) *regexp.Regexp {
	lines := strings.Split(regexp.QuoteMeta(masked(shown, "default")), "\n")
	for i, line := range lines {
		if lines[i] = strings.ReplaceAll(line, "…", ".*"); line == "…" {
			lines[i] = "(?s:.*)"
		}
	}
	return regexp.MustCompile("^" + strings.Join(lines, "\n") + "$")
}
