// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// plain brings answers into a form without what each server chooses: uids, versions, times, addresses and random names. What
// was equal in two answers of a server stays equal.
type plain struct {
	// words are replaced by others, such as the name of a namespace.
	words map[string]string
	// numbers are those of the uids and the versions that were seen; nil means that these are not told apart.
	numbers map[string]string
}

func newPlain(words map[string]string) *plain {
	return &plain{words: words, numbers: map[string]string{}}
}

// patterns are what each server chooses, with the words that take their places, in their order.
var patterns = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`(resource version|current): \d+( \(\d+\))?`), "$1: <version>"},
	{regexp.MustCompile(`(ResourceVersion in (the precondition|record)) \(\d+\)`), "$1 (<version>)"},
	{regexp.MustCompile(`ResourceVersion in (precondition|object meta): \d+`), "ResourceVersion in $1: <version>"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`^(\d+(\.\d+)?(ms|s|m|h))+$`), "<age>"},
	{regexp.MustCompile(`-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n`), "<certificate>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<host>"},
	{regexp.MustCompile(`hash=[0-9A-F]+`), "hash=<hash>"},
	{regexp.MustCompile(`\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`), "<token>"},
	{regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`), "kube-api-access-<5>"},
	{regexp.MustCompile(`Duplicate value: 3\d{4}\b`), "Duplicate value: <port>"},
	{regexp.MustCompile(`\bA_[a-z0-9]{5}\b`), "A_<5>"}, // the generated names of the suite fuzz
	{regexp.MustCompile(`"resourceVersion":"\d+"`), `"resourceVersion":"<version>"`},
}

var uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// of returns an answer as it is compared.
func (p *plain) of(a answer) answer {
	out := answer{Code: a.Code, Header: map[string]string{}, Body: p.value(a.Body, "")}
	for name, value := range a.Header {
		out.Header[name] = p.text(value)
	}
	return out
}

func (p *plain) value(value any, key string) any {
	switch value := value.(type) {
	case map[string]any:
		return p.object(value)
	case []any:
		out := make([]any, 0, len(value))
		if key == "managedFields" {
			slices.SortStableFunc(value, func(a, b any) int { return cmp.Compare(manager(a), manager(b)) })
		}
		for _, each := range value {
			out = append(out, p.value(each, key))
		}
		if key == "nonResourceURLs" { // a real server has them in random order
			slices.SortFunc(out, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return out
	case string:
		switch key {
		case "resourceVersion", "metadata.resourceVersion":
			return p.numbered("version", value)
		case "continue":
			return p.token(value)
		case "gitCommit":
			return "<commit>"
		}
		return p.text(value)
	case float64:
		if strings.HasSuffix(strings.ToLower(key), "nodeport") {
			return "<port>"
		}
	}
	return value
}

// object returns a map. The version of a list is not compared: other writes raise it.
func (p *plain) object(from map[string]any) any {
	metadata, _ := from["metadata"].(map[string]any)
	_, list := from["items"]
	if _, table := from["rows"]; (list || table) && metadata["resourceVersion"] != nil {
		metadata["resourceVersion"] = "0"
	}
	name, _ := from["name"].(string)
	if prefix, _ := from["generateName"].(string); prefix != "" && len(name) > 5 {
		from["name"] = name[:len(name)-5] + "<5>"
	}
	sortCauses(from)
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(from)) { // so that uids are seen in one order
		out[p.text(key)] = p.value(from[key], key)
	}
	return out
}

// sortCauses sorts the causes of an error, which a real server finds in random order in a custom resource. Its message has them all.
func sortCauses(status map[string]any) {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	message, _ := status["message"].(string)
	if before, _, several := strings.Cut(message, "["); several && len(causes) > 1 {
		status["message"] = before
	}
	if head, faults, found := strings.Cut(message, "errors:\n"); found { // of an apply, by fields in random order
		lines := strings.Split(faults, "\n")
		slices.Sort(lines)
		status["message"] = head + strings.Join(lines, "\n")
	}
	slices.SortStableFunc(causes, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// manager is what tells one entry of managed fields from another.
func manager(entry any) string {
	e, _ := entry.(map[string]any)
	return fmt.Sprint(e["manager"], e["operation"], e["apiVersion"], e["subresource"])
}

// numbered returns a number for a value.
func (p *plain) numbered(kind, value string) string {
	switch {
	case value == "" || value == "0":
		return value
	case p.numbers == nil:
		return "<" + kind + ">"
	}
	if p.numbers[kind+value] == "" {
		p.numbers[kind+value] = fmt.Sprintf("<%s %d>", kind, len(p.numbers)+1)
	}
	return p.numbers[kind+value]
}

func (p *plain) text(text string) string {
	for _, word := range slices.SortedFunc(maps.Keys(p.words), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, word, p.words[word])
	}
	text = uid.ReplaceAllStringFunc(text, func(id string) string { return p.numbered("uid", id) })
	for _, each := range patterns {
		text = each.pattern.ReplaceAllString(text, each.by)
	}
	return text
}

// token returns what a token of a list says, but for the version.
func (p *plain) token(text string) any {
	var out map[string]any
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return text
	}
	delete(out, "rv")
	return p.value(out, "")
}
