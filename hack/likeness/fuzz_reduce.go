// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reductions returns sequences that are smaller than one: without a request, a parameter or a field.
func reductions(sequence []request) (out [][]request) {
	for i := range len(sequence) - 1 {
		out = append(out, slices.Delete(slices.Clone(sequence), i, i+1))
	}
	for i, r := range sequence {
		for _, smaller := range r.reductions() {
			next := slices.Clone(sequence)
			next[i] = smaller
			out = append(out, next)
		}
	}
	return out
}

// reductions returns requests that are smaller than one by a parameter or a field.
func (r request) reductions() (out []request) {
	path, query, _ := strings.Cut(r.path, "?")
	parameters := strings.Split(query, "&")
	for i := range parameters {
		next := r
		if next.path = path; len(parameters) > 1 {
			next.path += "?" + strings.Join(slices.Delete(slices.Clone(parameters), i, i+1), "&")
		}
		if next.path != r.path {
			out = append(out, next)
		}
	}
	var body any
	if json.Unmarshal([]byte(r.body), &body) != nil {
		return out
	}
	for _, smaller := range smaller(body) {
		next := r
		next.body = encode(smaller)
		out = append(out, next)
	}
	return out
}

// smaller returns copies of a tree without one of its fields or items.
func smaller(value any) (out []any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			without := maps.Clone(value)
			delete(without, key)
			out = append(out, without)
			for _, each := range smaller(value[key]) {
				with := maps.Clone(value)
				with[key] = each
				out = append(out, with)
			}
		}
	case []any:
		for i := range value {
			out = append(out, slices.Delete(slices.Clone(value), i, i+1))
			for _, each := range smaller(value[i]) {
				with := slices.Clone(value)
				with[i] = each
				out = append(out, with)
			}
		}
	}
	return out
}

var (
	index  = regexp.MustCompile(`\[\d+\]`)
	quoted = regexp.MustCompile(`\\"[^"\\]*\\"|'[^']*'|\d+`)
)

// longestKind is how much of a message is told from another one, in bytes.
const longestKind = 80

// general returns a line of a difference without what is of one request alone.
func general(line string) string {
	path, values, _ := strings.Cut(line, ": ")
	switch {
	case path == "code":
		return line
	case strings.HasSuffix(path, "message"):
		values = quoted.ReplaceAllString(values, "")
		return path + ": " + values[:min(len(values), longestKind)]
	}
	return index.ReplaceAllString(path, "")
}

// resourceOf returns the resource of a path, with the subresource.
func resourceOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if part == "a" || part == "b" {
			return strings.Join(append(parts[i-1:i:i], parts[i+1:]...), "/")
		}
	}
	return parts[len(parts)-1]
}

// shortForms are the short names of the table of likeness for media types of patches.
var shortForms = map[string]string{
	"application/json-patch+json": "json", "application/merge-patch+json": "merge",
	"application/strategic-merge-patch+json": "strategic", "application/apply-patch+yaml": "apply",
}

// row returns a sequence as a row of the table of likeness.
func row(sequence []request, d *difference) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n- name: %s differs in %s\n  steps:\n", d.request, general(d.lines[0]))
	for i, r := range sequence {
		path := strings.NewReplacer("/api/v1/namespaces/$ns/", "$core/", "/apis/apps/v1/namespaces/$ns/", "$apps/").Replace(r.path)
		body := r.body
		if !strings.HasPrefix(body, "{") && body != "" {
			body = fmt.Sprintf("%q", body)
		}
		fmt.Fprintf(&out, "  - %s %s: %s\n", r.method, path, body)
		if form := r.header["Content-Type"]; form != "" {
			fmt.Fprintf(&out, "    as: %s\n", shortForms[form])
		}
		if keeps := kept(sequence[i+1:]); len(keeps) > 0 && r.method != "DELETE" {
			fmt.Fprintf(&out, "    keep: {%s}\n", strings.Join(keeps, ", "))
		}
	}
	for _, line := range d.lines {
		fmt.Fprintf(&out, "  # %s\n", line)
	}
	return out.String()
}

// kept returns what later requests need of an answer.
func kept(later []request) (out []string) {
	for name, path := range map[string]string{"$version": "metadata.resourceVersion", "$uid": "metadata.uid"} {
		if slices.ContainsFunc(later, func(r request) bool { return strings.Contains(r.path+r.body, name) }) {
			out = append(out, name[1:]+": "+path)
		}
	}
	slices.Sort(out)
	return out
}
