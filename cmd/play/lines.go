// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Colors of a terminal.
const (
	plain  = ""
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
	reset  = "\x1b[0m"
)

// Widths of columns. They never change, so that columns hold still: a longer name moves its own line alone.
const (
	widthObject = 36
	widthBy     = 12
)

// line is what happened to an object, or to the play itself.
type line struct {
	// object is the resource and the name, as in foos/web; empty for the play itself.
	object string
	// by is the handler, or the client that wrote.
	by string
	// what happened.
	what  string
	color string
}

// lines writes a line for each thing that happens. Its methods are safe for use by several goroutines.
type lines struct {
	mu    sync.Mutex
	out   io.Writer
	color bool
	// ordered: a line waits for those of writes that have begun before. They soon have words where the API server is in
	// the process.
	ordered bool
	// slots are those of lines that are not written yet, in order.
	slots []*slot
	// stages are the last words about objects that come alive.
	stages map[string]string
	now    func() time.Time
}

func newLines(out io.Writer, color bool) *lines {
	return &lines{out: out, color: color, stages: map[string]string{}, now: time.Now}
}

// say writes a line about the play itself.
func (l *lines) say(format string, args ...any) {
	l.write(line{what: fmt.Sprintf(format, args...), color: bold})
}

// fault writes an error, and what that means. No error has no line.
func (l *lines) fault(means string, err error) {
	if err != nil {
		l.faults(means, err.Error())
	}
}

// faults writes the words of an error, which may have several lines.
func (l *lines) faults(means, words string) {
	words = strings.TrimRight(words, "\n")
	switch {
	case means == "":
	case strings.Contains(words, "\n"):
		words = means + ":\n" + words
	default:
		words = means + ": " + words
	}
	l.write(line{what: words, color: red})
}

// asked says where the operator answers questions.
func (l *lines) asked(address string) {
	l.say("ask it with operator status, and operator why RESOURCE/NAME, in another shell:")
	l.say("  export HANDWERK_ADDRESS=%s", address)
}

// banner introduces the API server in the process: its kubeconfig, its limits, and the directory of its state.
func (l *lines) banner(operator, kubeconfig, keep string, kept bool) {
	l.say("operator %s runs against an API server in this process, until Ctrl-C. In another terminal:", operator)
	l.say("  export KUBECONFIG=%s", kubeconfig)
	for not := range strings.SplitSeq(NotACluster, "\n") {
		l.write(line{what: not, color: yellow})
	}
	switch {
	case kept:
		l.say("It goes on with the objects that are kept in %s.", keep)
	case keep != "":
		l.say("Its objects are kept in %s.", keep)
	}
}

// NotACluster says in two lines what an API server in the process lacks.
const NotACluster = `It is not a cluster: no containers run, Pods only say so, no network carries traffic,
and autoscalers and the controllers of others are missing.`

// print writes a line to the output.
func (l *lines) print(n line, at time.Time) {
	text := n.what
	if n.object != "" {
		text = fmt.Sprintf("%-*s  %-*s  %s", widthObject, n.object, widthBy, n.by, n.what)
	}
	text = strings.TrimRight(text, " ")
	if l.color && n.color != plain {
		text = n.color + text + reset
	}
	fmt.Fprintf(l.out, "%s  %s\n", at.Format("15:04:05.000"), text)
}

// object names an object for a line. The namespace default goes without saying.
func object(resource, namespace, name string) string {
	if plural, _, found := strings.Cut(resource, "."); found {
		resource = plural
	}
	if resource == "customresourcedefinitions" {
		resource = "crds"
	}
	if namespace != "" && namespace != "default" {
		name = namespace + "/" + name
	}
	return strings.TrimSuffix(resource+"/"+name, "/")
}
