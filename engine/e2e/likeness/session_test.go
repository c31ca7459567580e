// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const (
	crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// agent is the client's name, from which a field manager's is taken.
	agent = "likeness/1"
)

// forms are the media types of bodies by their short names.
var forms = map[string]string{
	"":          "application/json",
	"yaml":      "application/yaml",
	"merge":     "application/merge-patch+json",
	"json":      "application/json-patch+json",
	"strategic": "application/strategic-merge-patch+json",
	"apply":     "application/apply-patch+yaml",
}

// session is one row's work with a server.
type session struct {
	t         *testing.T
	server    endpoint
	namespace string
	values    map[string]string // of $names
	plain     *plain
}

func newSession(t *testing.T, s endpoint, namespace string) *session {
	return &session{t: t, server: s, namespace: namespace, plain: newPlain(namespace), values: map[string]string{
		"$ns": namespace, "$core": "/api/v1/namespaces/" + namespace, "$apps": "/apis/apps/v1/namespaces/" + namespace,
		"$group": namespace + ".example.com", "$model": "com.example." + namespace,
	}}
}

// play sends the requests of a row, and returns the answers as they are compared.
func (s *session) play(r row) (out []answer) {
	s.t.Helper()
	if r.mentions("$ns", "$core", "$apps", "$group") {
		s.settle()
	}
	for _, step := range r.Steps {
		a := s.do(step)
		s.keep(step, a)
		if a.Code == http.StatusCreated && step.method == http.MethodPost && step.path == crds {
			s.server.served(s.t, &unstructured.Unstructured{Object: a.Body.(map[string]any)})
		}
		shown := slices.Clone(step.Show)
		for i, path := range shown {
			shown[i] = s.fill(path)
		}
		step.Show = shown
		out = append(out, s.plain.of(step, a))
	}
	return out
}

// settle creates the namespace, and waits for what each namespace has.
func (s *session) settle() {
	s.t.Helper()
	if a := s.do(step{method: http.MethodPost, path: "/api/v1/namespaces", body: `{"metadata":{"name":"$ns"}}`}); a.Code != http.StatusCreated {
		s.t.Fatalf("creating the namespace: %v", a.Body)
	}
	for _, object := range []string{"$core/serviceaccounts/default", "$core/configmaps/kube-root-ca.crt"} {
		s.do(step{method: http.MethodGet, path: object, Until: &condition{code: http.StatusOK}})
	}
}

// fill puts values in the place of names.
func (s *session) fill(text string) string {
	for _, name := range slicesByLength(maps.Keys(s.values)) {
		text = strings.ReplaceAll(text, name, s.values[name])
	}
	return text
}

// keep takes values of an answer for later steps.
func (s *session) keep(step step, a answer) {
	s.t.Helper()
	for name, at := range step.Keep {
		values := valuesAt(a.Body, strings.Split(at, "."))
		if len(values) == 0 {
			s.t.Fatalf("%s: the answer has no %s: %v", &step, at, a.Body)
		}
		s.values["$"+name] = fmt.Sprint(values[0])
	}
}

// do sends a request, again and again if it has to become true.
func (s *session) do(step step) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), cluster.Patience)
	defer cancel()
	if step.Until == nil {
		return s.send(ctx, step)
	}
	until := s.filled(step.Until)
	if step.method != http.MethodGet {
		return s.poll(ctx, step, until)
	}
	for {
		changes, end := s.watch(ctx, step)
		var last answer
		for more := true; more; _, more = changes.line() {
			if last = s.send(ctx, step); until.holds(last) {
				end()
				return last
			}
		}
		end()
		if ctx.Err() != nil {
			s.t.Fatalf("%s: waiting for %v: %v; the last answer is %+v", &step, *step.Until, context.Cause(ctx), last)
		}
	}
}

// pause is the time between two requests of a step that polls. A real server takes about a second to enforce a policy.
const pause = 50 * time.Millisecond

// poll sends a write, a dry run, until its answer is as a step waits for: there is nothing to watch.
func (s *session) poll(ctx context.Context, step step, until *condition) answer {
	s.t.Helper()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		last := s.send(s.t.Context(), step)
		if until.holds(last) {
			return last
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s: waiting for %v: %v; the last answer is %+v", &step, *step.Until, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// filled returns a condition with values in the place of names.
func (s *session) filled(c *condition) *condition {
	out := &condition{code: c.code, values: map[string]any{}}
	for at, want := range c.values {
		if text, is := want.(string); is {
			want = s.fill(text)
		}
		out.values[at] = want
	}
	return out
}

// watch watches the object of a step.
func (s *session) watch(ctx context.Context, of step) (changes *lines, end func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	at, _, _ := strings.Cut(of.path, "?")
	query := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + path.Base(s.fill(at))}}
	response := s.open(ctx, step{method: http.MethodGet, path: path.Dir(at) + "?" + query.Encode()})
	return &lines{bufio.NewReader(response.Body)}, func() {
		cancel()
		response.Body.Close()
	}
}

// holds reports whether an answer is as a step waits for.
func (c *condition) holds(a answer) bool {
	if c.code != 0 {
		return a.Code == c.code
	}
	for at, want := range c.values {
		values := valuesAt(a.Body, strings.Split(at, "."))
		if (want == nil) != (len(values) == 0) || want != nil && !reflect.DeepEqual(values[0], want) {
			return false
		}
	}
	return true
}

// open sends a request and returns the response.
func (s *session) open(ctx context.Context, step step) *http.Response {
	s.t.Helper()
	var body io.Reader
	if step.body != "" {
		body = strings.NewReader(s.fill(step.body))
	}
	h, err := http.NewRequestWithContext(ctx, step.method, s.server.host+s.fill(step.path), body)
	if err != nil {
		s.t.Fatal(err)
	}
	h.Header.Set("User-Agent", agent)
	if step.User != "" {
		h.Header.Set("Impersonate-User", s.fill(step.User))
	}
	for name, value := range step.Headers {
		h.Header.Set(name, s.fill(value))
	}
	h.Header.Set("Accept", "application/json")
	if step.Accept != "" {
		h.Header.Set("Accept", step.Accept)
	}
	if body != nil {
		kind, known := forms[step.As]
		if !known {
			kind = step.As
		}
		h.Header.Set("Content-Type", kind)
	}
	response, err := s.server.client.Do(h)
	if err != nil {
		s.t.Fatalf("%s: %v", &step, err)
	}
	if response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") != "" { // storage of a new CRD is not ready yet
		response.Body.Close()
		<-time.After(time.Second) // as its Retry-After says
		return s.open(ctx, step)
	}
	return response
}

// send sends a request and returns the answer.
func (s *session) send(ctx context.Context, step step) answer {
	s.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response := s.open(ctx, step)
	defer response.Body.Close()
	out := answer{
		Step: step.String(), Code: response.StatusCode,
		Kind: response.Header.Get("Content-Type"), Warnings: response.Header.Values("Warning"),
	}
	if at, err := url.Parse(step.path); err == nil && (at.Query().Has("watch") || step.Events > 0) && response.ContentLength < 0 && out.Code == http.StatusOK {
		out.Body = s.events(&lines{bufio.NewReader(response.Body)}, step)
		if ctx.Err() != nil {
			s.t.Fatalf("%s: the watch does not end", &step)
		}
		return out
	}
	data, err := io.ReadAll(response.Body)
	if err == nil {
		out.Body, err = parsed(out.Kind, data)
	}
	if err != nil {
		s.t.Fatalf("%s: reading the answer: %v", &step, err)
	}
	return out
}

// events reads as many events of a watch as the step wants.
func (s *session) events(from *lines, step step) any {
	s.t.Helper()
	out := []any{}
	for step.Events == 0 || len(out) < step.Events {
		line, more := from.line()
		if !more {
			if step.Events > 0 {
				s.t.Errorf("%s: the watch has ended after %d events", &step, len(out))
			}
			break
		}
		var event any
		if err := json.Unmarshal(line, &event); err != nil {
			s.t.Fatalf("%s: reading an event: %v", &step, err)
		}
		out = append(out, event)
	}
	return out
}

// lines reads a watch line by line.
type lines struct{ reader *bufio.Reader }

// line returns the next line, or false at the end.
func (l *lines) line() ([]byte, bool) {
	line, err := l.reader.ReadBytes('\n')
	return line, err == nil
}
