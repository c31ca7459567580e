// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

const (
	// headMost is how much of its text a short line has, in bytes. textMost is how much of it a summary has.
	headMost = 60
	textMost = 2000
	// namesMost is how many objects a summary names.
	namesMost = 20
)

// subHandlers ends the name that stands for all sub-handlers of a handler.
const subHandlers = "/*"

// Failure is a failure of a handler, or of a reconcile, for the log.
type Failure struct {
	// Log adds the object and the handler to its lines.
	Log logr.Logger
	// Key is the object's, empty for none. Handler is empty for a reconcile. The name of a sub-handler begins with its
	// handler's name and a slash.
	Key     cache.ObjectName
	Handler string
	Err     error
	// Line is the message if there will be a retry. Final is the message if there is none; otherwise empty.
	Line, Final string
	// Grave: the line is an error. Otherwise it is a warning, unless it is final.
	Grave bool
	// Known: the object has failed with the text before.
	Known bool
	// Due is the time of the retry, zero if unknown.
	Due time.Time
	// Values are more values of the line.
	Values []any
}

// speaker is a handler that fails for an object.
type speaker struct {
	key     cache.ObjectName
	handler string
}

func (f Failure) speaker() speaker { return speaker{f.Key, f.Handler} }

// topic is a text with which a handler fails, together with the message.
type topic struct {
	handler, line string
	text          [sha256.Size]byte
}

// topic returns the part of a failure that other objects' failures may share: the text without names. Sub-handlers of
// one handler share one.
func (f Failure) topic() topic {
	handler, sub, is := strings.Cut(f.Handler, "/")
	names := []string{f.Key.Name, f.Key.Namespace}
	if is {
		handler += subHandlers
		names = append(names, strings.Split(sub, "/")...)
	}
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) }) // one name may be part of another
	text := f.Err.Error()
	for _, name := range names {
		text = logmark.Unnamed(text, name)
	}
	return topic{handler: handler, line: f.Line, text: sha256.Sum256([]byte(text))}
}

// whole writes the line with the whole text.
func (f Failure) whole() { f.write(f.Err) }

// short writes the line with the beginning of its text, and names the object whose line has the whole text.
func (f Failure) short(full speaker) {
	same := full.key.String()
	if full.handler != f.Handler {
		same += " " + full.handler
	}
	f.write(errors.New(shortened(f.Err.Error(), headMost)), "sameAs", same)
}

// LogVerbose writes the line at level 1.
func (f Failure) LogVerbose() {
	if log := f.Log.V(1); log.Enabled() {
		log.Info(f.Line, append([]any{"error", f.Err.Error()}, f.Values...)...)
	}
}

func (f Failure) write(text error, more ...any) {
	more = append(more, f.Values...)
	switch {
	case f.Final != "":
		f.Log.Error(text, f.Final, more...)
	case f.Grave:
		f.Log.Error(text, f.Line, more...)
	default:
		f.Log.Info(f.Line, append([]any{logmark.Warning, true, "error", text.Error()}, more...)...)
	}
}

// window counts the failures with a text between two summaries.
type window struct {
	number int
	began  time.Time
	// text is the text of an object that still fails, if there is one. speaker is that object.
	text    string
	speaker speaker
	// named are objects that still fail.
	named []named
	// objects counts objects, or their sub-handlers, that still fail. failed counts failures. quiet: some had no line.
	// grave: some are errors.
	objects, failed int
	quiet, grave    bool
}

// named is an object that a summary names.
type named struct {
	voice *Voice
	speaker
}

// add counts a failure. First: its voice has no failure in this window yet.
func (w *window) add(f Failure, v *Voice, first bool) {
	if w.text == "" || !slices.ContainsFunc(w.named, func(n named) bool { return n.speaker == w.speaker }) {
		w.text, w.speaker = shortened(f.Err.Error(), textMost), f.speaker()
	}
	w.failed++
	w.grave = w.grave || f.Grave
	if first {
		w.objects++
	}
	same := func(n named) bool { return n.key == f.Key }
	if len(w.named) < namesMost && !slices.ContainsFunc(w.named, same) {
		w.named = append(w.named, named{v, f.speaker()})
	}
}

// remove removes a voice that no longer fails from the counts.
func (w *window) remove(v *Voice) {
	w.objects--
	w.named = slices.DeleteFunc(w.named, func(n named) bool { return n.voice == v })
}

// summary writes the summary of a text.
func (w *window) summary(log logr.Logger, of topic, now time.Time) {
	const line = "objects still fail"
	var names []string
	for _, n := range w.named {
		names = append(names, n.key.String())
	}
	count, values := "objects", []any{"line", of.line}
	if strings.HasSuffix(of.handler, subHandlers) {
		count = "subHandlers"
	}
	if of.handler != "" {
		values = append([]any{"handler", of.handler}, values...)
	}
	values = append(values, count, w.objects, "names", names, "failed", w.failed, "within", now.Sub(w.began).Round(time.Second).String())
	if w.grave {
		log.Error(errors.New(w.text), line, values...)
		return
	}
	log.Info(line, append([]any{logmark.Warning, true, "error", w.text}, values...)...)
}

// shortened returns at most so many bytes of a text, and a mark if bytes are left out.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
