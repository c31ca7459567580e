// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// Path is the path of a field in an object. Each element is a map key; paths do not enter lists.
type Path []string

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// ParsePath reads a path in the form of the configuration: keys joined by dots. A key with a dot or a slash is in
// brackets and double quotes, as in `metadata.labels["app.kubernetes.io/name"]`. A leading dot is allowed, as in
// kubectl's JSONPath.
func ParsePath(text string) (Path, error) {
	rest := strings.TrimPrefix(text, ".")
	var path Path
	for first := true; rest != "" || first; first = false {
		var key string
		var err error
		switch {
		case strings.HasPrefix(rest, `["`):
			key, rest, err = quotedKey(rest)
		case first:
			key, rest, err = dottedKey(rest)
		case strings.HasPrefix(rest, "."):
			key, rest, err = dottedKey(rest[1:])
		default:
			err = fmt.Errorf("unexpected %q", rest)
		}
		if err != nil {
			return nil, fmt.Errorf("reading field path %q: %w", text, err)
		}
		path = append(path, key)
	}
	return path, nil
}

// UnmarshalText is [ParsePath].
func (p *Path) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePath(string(text))
	return err
}

// MustParsePath is [ParsePath] for constants; it panics on a fault.
func MustParsePath(text string) Path {
	p, err := ParsePath(text)
	if err != nil {
		panic("dsl: " + err.Error())
	}
	return p
}

func dottedKey(s string) (key, rest string, err error) {
	end := strings.IndexAny(s, ".[")
	if end < 0 {
		end = len(s)
	}
	key, rest = s[:end], s[end:]
	if !plainKey.MatchString(key) {
		return "", "", fmt.Errorf("%q is not a field name (quote it: [%q])", key, key)
	}
	return key, rest, nil
}

func quotedKey(s string) (key, rest string, err error) {
	end := strings.Index(s, `"]`)
	if end < 2 {
		return "", "", fmt.Errorf("%q has no closing \"]", s)
	}
	if key = s[2:end]; key == "" {
		return "", "", fmt.Errorf("empty key")
	}
	return key, s[end+2:], nil
}

// String writes the path in the form of ParsePath.
func (p Path) String() string {
	var b strings.Builder
	for i, key := range p {
		switch {
		case !plainKey.MatchString(key):
			fmt.Fprintf(&b, `["%s"]`, key)
		case i > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return b.String()
}

// In returns the value at p in tree. It is not found when a key is missing, or when the path goes through a value
// that is not a map.
func (p Path) In(tree map[string]any) (value any, found bool) {
	var at any = tree
	for _, key := range p {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
		if unlisted, is := at.(fieldNotInReads); is {
			_ = unlisted.missed() // which has failed the test
			return nil, false
		}
	}
	return at, true
}

// Pointer returns the path as a JSON pointer (RFC 6901), as in /metadata/labels/example.com~1size.
func (p Path) Pointer() string {
	var out strings.Builder
	for _, step := range p {
		out.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return out.String()
}

// Covers reports whether a change at other changes the value at p: one path is a prefix of the other.
func (p Path) Covers(other Path) bool {
	n := min(len(p), len(other))
	return slices.Equal(p[:n], other[:n])
}

// Leads reports whether p is a prefix of other.
func (p Path) Leads(other Path) bool { return len(p) <= len(other) && p.Covers(other) }

// Authored reports whether p is in an object's essence, whatever the object: neither in the status nor in
// bookkeeping metadata.
func (p Path) Authored() bool {
	switch {
	case p[0] == "status", p[0] == "apiVersion", p[0] == "kind":
		return false
	case p[0] != "metadata":
		return true
	case len(p) > 2 && p[1] == "annotations":
		return !bookkeeping.MayBe(p[2])
	case len(p) > 2 && p[1] == "labels":
		return !bookkeeping.MayBeLabel(p[2])
	}
	return len(p) > 1 && (p[1] == "labels" || p[1] == "annotations")
}

// set puts value at p, and makes the maps on the way. In a merge patch, a nil value is a removal.
func (p Path) set(tree map[string]any, value any) error {
	for _, key := range p[:len(p)-1] {
		next, found := tree[key]
		if !found {
			next = map[string]any{}
			tree[key] = next
		}
		m, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("setting %s: %s is set to something that is not a map", p, key)
		}
		tree = m
	}
	tree[p[len(p)-1]] = value
	return nil
}
