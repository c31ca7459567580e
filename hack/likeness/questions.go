// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// question is a request whose answers are compared. Questions are asked in their order, as later ones are about what earlier ones
// have written.
type question struct {
	Name string
	// Request is the method and the path.
	Request string
	Body    string
	Header  map[string]string
	// Keep takes values of the answer for later questions, which have them as $name, by their paths; etag is the tag of the body.
	Keep map[string]string
	// Wait asks again until the answer is as it should be: something happens in the background.
	Wait bool
}

// patience is how long a question is asked again, and calm how long an answer stays as it is before it counts.
const (
	patience = 10 * time.Second
	calm     = 6 * time.Second // a real server empties a namespace 5 seconds after its deletion
)

// questions asks questions about all that an API server does, and compares the answers with those of a real one.
func questions(ctx context.Context, s Servers) (Report, error) {
	all, err := s.readQuestions()
	if err != nil {
		return Report{}, err
	}
	if s.Remeasure {
		if err := s.remeasureQuestions(ctx, all); err != nil {
			return Report{}, err
		}
	}
	real, err := s.readAnswers()
	if err != nil {
		return Report{}, err
	}
	sandbox, err := s.quietSandbox(ctx)
	if err != nil {
		return Report{}, err
	}
	defer sandbox.Stop()
	got, err := ask(ctx, connect(sandbox), all, func(name string) (answer, bool) {
		want, known := real.Answers[name]
		return want, known
	})
	if err != nil {
		return Report{}, err
	}
	out := Report{Title: "questions (" + real.About + ")"}
	for _, q := range all {
		if want, known := real.Answers[q.Name]; known && s.Selected(q.Name) {
			lines := differences(want, got[q.Name])
			out.Cases = append(out.Cases, Case{Name: q.Name, Real: true, Sandbox: len(lines) == 0, Why: strings.Join(lines[:min(len(lines), 3)], "; ")})
		}
	}
	return out, nil
}

// remeasureQuestions asks a real server, and keeps its answers.
func (s Servers) remeasureQuestions(ctx context.Context, all []question) error {
	real, err := s.quietReal(ctx)
	if err != nil {
		return err
	}
	defer real.Stop()
	found, err := ask(ctx, connect(real), all, func(string) (answer, bool) { return answer{}, false })
	if err != nil {
		return err
	}
	about := fmt.Sprintf("Kubernetes %s, real server asked on %s", kubernetesVersion, time.Now().Format(time.DateOnly))
	var out strings.Builder
	fmt.Fprintf(&out, "{\"about\": %q, \"answers\": {\n", about)
	for i, name := range slices.Sorted(maps.Keys(found)) {
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(&out, "%q: %s", name, encode(found[name]))
	}
	out.WriteString("\n}}\n")
	return os.WriteFile(s.answersFile(), []byte(out.String()), 0o644)
}

// answersFile is the path of the file with the answers of a real server.
func (s Servers) answersFile() string {
	return filepath.Join(s.root, "hack/likeness/known", "questions.json")
}

// knownAnswers are those of a real server.
type knownAnswers struct {
	About   string
	Answers map[string]answer
}

func (s Servers) readAnswers() (out knownAnswers, err error) {
	data, err := os.ReadFile(s.answersFile())
	if err != nil {
		return out, fmt.Errorf("reading known answers: %w; -real asks for them", err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("reading known answers: %w", err)
	}
	return out, nil
}

func (s Servers) readQuestions() (out []question, err error) {
	data, err := os.ReadFile(filepath.Join(s.root, "hack/likeness/questions.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("reading questions.yaml: %w", err)
	}
	return out, nil
}

// asking is what one server has been asked.
type asking struct {
	connection
	plain  *plain
	values map[string]string
}

// ask asks all questions, and returns the answers by their names. Expected returns the answer that a question waits for, if it is
// known.
func ask(ctx context.Context, c connection, all []question, expected func(name string) (answer, bool)) (map[string]answer, error) {
	a := asking{c, &plain{}, map[string]string{}}
	out := map[string]answer{}
	for _, q := range all {
		want, known := expected(q.Name)
		got, err := a.once(ctx, q)
		since := time.Now()
		for end := since.Add(patience); err == nil && q.Wait && time.Now().Before(end); {
			if known && len(differences(want, got)) == 0 || !known && time.Since(since) > calm {
				break
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
			var next answer
			if next, err = a.once(ctx, q); len(differences(got, next)) > 0 {
				since = time.Now()
			}
			got = next
		}
		if err != nil {
			return nil, fmt.Errorf("asking %s: %w", q.Name, err)
		}
		out[q.Name] = got
	}
	return out, nil
}

// pause waits for some time.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var filling = regexp.MustCompile(`\$fill\((\d+)\)`)

// once asks a question, and returns the answer as it is compared.
func (a asking) once(ctx context.Context, q question) (answer, error) {
	var pairs []string
	for _, name := range slices.SortedFunc(maps.Keys(a.values), func(x, y string) int { return len(y) - len(x) }) {
		pairs = append(pairs, "$"+name, a.values[name])
	}
	names := strings.NewReplacer(pairs...)
	method, path, _ := strings.Cut(q.Request, " ")
	r := request{method: method, path: names.Replace(path), body: names.Replace(q.Body), header: map[string]string{}}
	r.body = filling.ReplaceAllStringFunc(r.body, func(text string) string {
		n, err := strconv.Atoi(filling.FindStringSubmatch(text)[1])
		if err != nil {
			return text
		}
		return strings.Repeat("x", n)
	})
	for name, value := range q.Header {
		r.header[name] = names.Replace(value)
	}
	got, err := a.send(ctx, r)
	if err != nil {
		return got, err
	}
	for name, at := range q.Keep {
		if value := valueAt(got.Body, strings.Split(at, ".")); value != nil {
			a.values[name] = fmt.Sprint(value)
		} else if at == "etag" {
			a.values[name] = got.etag
		}
	}
	out := a.plain.of(got)
	if out.Code < http.StatusBadRequest {
		out.Body = shortened(out.Body)
	}
	return out, nil
}

// valueAt returns the value at a path, or nil. A text may have a tree in it.
func valueAt(value any, path []string) any {
	if text, is := value.(string); is && json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// longest is the length of a body that is compared as a whole, in bytes.
const longest = 16 << 10

// shortened returns a body, or the names of its fields and the numbers of their entries if it is long.
func shortened(body any) any {
	if len(encode(body)) <= longest {
		return body
	}
	object, is := body.(map[string]any)
	if !is {
		return "a long body"
	}
	out := map[string]any{}
	for name, value := range object {
		switch value := value.(type) {
		case []any:
			out[name] = fmt.Sprintf("%d items", len(value))
		case map[string]any:
			out[name] = slices.Sorted(maps.Keys(value))
		default:
			out[name] = "a value"
		}
	}
	return out
}
