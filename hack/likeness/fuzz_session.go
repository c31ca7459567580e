// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// fuzzKinds are the CRDs whose objects are among the generated ones.
//
//go:embed fuzz_crds.json
var fuzzCRDs string

// prepare creates the CRDs on both servers, and waits until they are served.
func (f *fuzzer) prepare(ctx context.Context) error {
	for line := range strings.Lines(fuzzCRDs) {
		for _, c := range []connection{f.real, f.sandbox} {
			if _, err := c.send(ctx, request{method: http.MethodPost, path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: line}); err != nil {
				return err
			}
		}
	}
	for _, c := range []connection{f.real, f.sandbox} {
		if err := c.await(ctx, "/apis/fuzz.example.com/v1/foos"); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a path is found.
func (c connection) await(ctx context.Context, path string) error {
	return c.awaiting(ctx, path, func(a answer) bool { return a.Code == http.StatusOK })
}

// awaiting waits until the answer to a read is so.
func (c connection) awaiting(ctx context.Context, path string, is func(answer) bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		a, err := c.send(ctx, request{method: http.MethodGet, path: path})
		if err != nil || is(a) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}

// fuzzSession is a sequence with one server.
type fuzzSession struct {
	connection
	namespace string
	plain     *plain
	// version and uid are those of the last object that was written or read.
	version, uid string
}

// start creates the namespace of a sequence, and waits for what each namespace has.
func (f *fuzzer) start(ctx context.Context, c connection, namespace string) (*fuzzSession, error) {
	s := &fuzzSession{connection: c, namespace: namespace, plain: newPlain(map[string]string{namespace: "<ns>"}), version: "1", uid: "1"}
	body := fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace)
	if _, err := c.send(ctx, request{method: http.MethodPost, path: "/api/v1/namespaces", body: body}); err != nil {
		return nil, err
	}
	return s, s.furnished(ctx)
}

// furnished waits for what each namespace has. It is made again after its deletion.
func (s *fuzzSession) furnished(ctx context.Context) error {
	for _, path := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
		is := func(a answer) bool {
			o, _ := a.Body.(map[string]any)
			metadata, _ := o["metadata"].(map[string]any)
			return a.Code == http.StatusOK && metadata["deletionTimestamp"] == nil
		}
		if err := s.awaiting(ctx, "/api/v1/namespaces/"+s.namespace+"/"+path, is); err != nil {
			return err
		}
	}
	return nil
}

// finish deletes the namespace of a sequence, and objects outside of it.
func (f *fuzzer) finish(ctx context.Context, namespace string) error {
	for _, c := range []connection{f.real, f.sandbox} {
		if _, err := c.send(ctx, request{method: http.MethodDelete, path: "/api/v1/namespaces/" + namespace}); err != nil {
			return err
		}
		for _, path := range outside() {
			if err := c.clear(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear deletes the objects of a list, except those of the cluster itself.
func (c connection) clear(ctx context.Context, path string) error {
	a, err := c.send(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	list, _ := a.Body.(map[string]any)
	items, _ := list["items"].([]any)
	for _, item := range items {
		o, _ := item.(map[string]any)
		metadata, _ := o["metadata"].(map[string]any)
		name := fmt.Sprint(metadata["name"])
		if strings.HasPrefix(name, "system-") {
			continue
		}
		for _, r := range []request{
			{method: http.MethodPatch, path: path + "/" + name, body: `{"metadata":{"finalizers":null}}`, header: patchType("merge-patch+json")},
			{method: http.MethodDelete, path: path + "/" + name},
		} {
			if _, err := c.send(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends a request with the names of the session, and returns the answer as it is compared.
func (s *fuzzSession) send(ctx context.Context, r request) (answer, error) {
	names := strings.NewReplacer("$ns", s.namespace, "$version", s.version, "$uid", s.uid)
	r.path, r.body = names.Replace(r.path), names.Replace(r.body)
	if list, _, cached := strings.Cut(r.path, "/a?"); r.method == http.MethodGet && strings.Contains(r.path, "resourceVersion=") {
		if !cached {
			list, _, _ = strings.Cut(strings.TrimSuffix(r.path, "/b"), "?")
		}
		if _, err := s.connection.send(ctx, request{method: http.MethodGet, path: list}); err != nil { // so that the cache is current
			return answer{}, err
		}
	}
	a, err := s.connection.send(ctx, r)
	if err != nil {
		return a, err
	}
	if o, is := a.Body.(map[string]any); is && a.Code < http.StatusMultipleChoices {
		if metadata, is := o["metadata"].(map[string]any); is && metadata["uid"] != nil {
			s.version, s.uid = fmt.Sprint(metadata["resourceVersion"]), fmt.Sprint(metadata["uid"])
		}
	}
	return s.plain.of(a), s.settle(ctx, r, a)
}

// longestSettling is how long a session waits for controllers. Some objects never come to rest.
const longestSettling = 3 * time.Second

// settle waits until the controllers of a server have done what a write is for them to do: each takes its own time. They write the
// status of a budget, and delete what has no owner or is to leave its dependents.
func (s *fuzzSession) settle(ctx context.Context, r request, a answer) error {
	o, _ := a.Body.(map[string]any)
	failed := a.Code >= http.StatusMultipleChoices
	switch {
	case r.method == http.MethodGet, strings.Contains(r.path+r.body, "dryRun"):
		return nil
	case failed && r.method != http.MethodDelete: // a deletion of several objects may have deleted some
		return nil
	case !failed && isSettled(a) && o["items"] == nil:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestSettling)
	defer cancel()
	metadata, _ := o["metadata"].(map[string]any)
	path, _, _ := strings.Cut(r.path, "?")
	if r.method == http.MethodPost {
		path += "/" + fmt.Sprint(metadata["name"])
	}
	err := s.awaiting(ctx, strings.TrimSuffix(path, "/status"), isSettled)
	if err == nil && r.method == http.MethodDelete {
		err = s.furnished(ctx)
	}
	if ctx.Err() != nil {
		return nil // it is compared as it is
	}
	return err
}

// isSettled reports whether an answer has no object that a controller is about to change.
func isSettled(a answer) bool {
	o, _ := a.Body.(map[string]any)
	metadata, _ := o["metadata"].(map[string]any)
	if items, is := o["items"].([]any); is {
		return !slices.ContainsFunc(items, func(item any) bool { return !isSettled(answer{Body: item}) })
	}
	if a.Code >= http.StatusMultipleChoices || metadata["uid"] == nil {
		return true
	}
	if status, _ := o["status"].(map[string]any); o["kind"] == "PodDisruptionBudget" && status["observedGeneration"] != metadata["generation"] {
		return false
	}
	finalizers, _ := metadata["finalizers"].([]any)
	if metadata["deletionTimestamp"] != nil {
		return !slices.ContainsFunc(finalizers, func(f any) bool {
			return f == "orphan" || f == "foregroundDeletion"
		})
	}
	return metadata["ownerReferences"] == nil
}

//go:embed fuzz_excuses.json
var fuzzExcuses []byte

// excuse is a known difference.
type excuse struct {
	// Request and Line are parts of the request and of the line of the difference; empty ones match everything.
	Request, Line string
	// Why is the sentence that says why it stays.
	Why string
}

func readExcuses() (out []excuse, err error) {
	if err := json.Unmarshal(fuzzExcuses, &out); err != nil {
		return nil, fmt.Errorf("reading the known differences: %w", err)
	}
	return out, nil
}

// unexcused returns the lines that no known difference explains. One that explains a line without a path explains all.
func (f *fuzzer) unexcused(r request, lines []string) (out []string) {
	for _, line := range lines {
		known := false
		for _, e := range f.excuses {
			if strings.Contains(r.String()+" "+r.body, e.Request) && strings.Contains(line, e.Line) {
				if e.Line == "" {
					return nil
				}
				known = true
			}
		}
		if !known {
			out = append(out, line)
		}
	}
	return out
}
