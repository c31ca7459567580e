// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sayings are the texts of the program's source: what it can say to people.
type sayings struct {
	literals map[string]bool
	// formats are the literals with verbs, as patterns.
	formats []*regexp.Regexp
	// lines are what it logs without being asked for detail, with the place; reasons are those of Events.
	lines, reasons map[string]string
	// schema is that of configurations.
	schema string
}

// TestTroubleshootingQuotesTheProgram holds that each line, Event, condition, metric and flag that
// docs/troubleshooting.md and docs/log.md quote is said by the program, in these words.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	page, said := pagesOfTroubles(t), listen(t)
	// others' are words of Kubernetes, and of the page's own examples.
	others := []string{
		"operator.yaml:12:7: …", "connection refused", "no such host", "x509: …", "process_resident_memory_bytes",
		"managedFields", "status.conditions", "events.events.k8s.io", "leases.coordination.k8s.io", "kubectl-patch", "kubectl logs",
		"kubectl-handwerk", "kubectl handwerk status",
		"get", "True", "team-7", "mode=release", "in namespace team-0 (10 of 60 were asked for)",
	}
	quotes := quotesOf(page)
	if len(quotes) < 100 {
		t.Errorf("the pages have %d quotes", len(quotes))
	}
	for _, quote := range quotes {
		if !slices.Contains(others, quote) && !said.says(quote) {
			t.Errorf("docs/troubleshooting.md or docs/log.md quotes %q, which the program does not say", quote)
		}
	}
}

// TestTroubleshootingKnowsEachLine holds that readers find each line of the log, each reason of an Event and each
// metric of ours in docs/troubleshooting.md or docs/log.md.
func TestTroubleshootingKnowsEachLine(t *testing.T) {
	page, said := pagesOfTroubles(t), listen(t)
	quotes := quotesOf(page)
	for _, all := range []map[string]string{said.lines, said.reasons, said.metrics()} {
		if len(all) < 5 {
			t.Errorf("the program says %d things: %v", len(all), all)
		}
		for _, text := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains(quotes, text) {
				t.Errorf("docs/troubleshooting.md and docs/log.md do not explain %q (%s)", text, all[text])
			}
		}
	}
}

// pagesOfTroubles is the text of the pages that explain what an operator says.
func pagesOfTroubles(t *testing.T) string {
	t.Helper()
	return readPage(t, "../docs/troubleshooting.md") + "\n" + readPage(t, "../docs/log.md")
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// quotesOf are the code spans of a page and the lines of its code blocks.
func quotesOf(page string) (out []string) {
	for i, part := range strings.Split(page, "```") {
		if i%2 == 1 {
			_, block, _ := strings.Cut(part, "\n")
			out = append(out, strings.Split(strings.TrimSpace(block), "\n")...)
			continue
		}
		for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.ReplaceAll(part, "\n", " "), -1) {
			text := strings.Join(strings.Fields(span[1]), " ")
			metric, _, _ := strings.Cut(text, "{")
			out = append(out, text, metric)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// says reports whether the program says a text: as it is, from a format, up to where the page leaves off, or in
// parts.
func (s *sayings) says(text string) bool {
	if s.word(text) || s.begins(text) || s.composed(text) {
		return true
	}
	if path, is := strings.CutPrefix(text, "/"); is {
		path, _, _ = strings.Cut(path, "?")
		return s.literals[path]
	}
	if flag, is := strings.CutPrefix(text, "--"); is {
		name, _, _ := strings.Cut(strings.ReplaceAll(flag, " ", "="), "=")
		return s.literals[name]
	}
	if metric, labels, is := strings.Cut(text, "{"); is && strings.HasSuffix(labels, "}") {
		return s.all(append(strings.Split(strings.TrimSuffix(labels, "}"), ","), metric))
	}
	if command, is := strings.CutPrefix(text, "operator "); is {
		name, _, _ := strings.Cut(command, " ")
		return s.command(name)
	}
	return s.check(text)
}

// verbs are those of the API, as missing rights are reported.
var verbs = regexp.MustCompile(`^(get|list|watch|create|update|patch|delete|, )+( in namespace \S+)?$`)

// word reports whether a text is one of the program's, made from one of its formats, or one of the language.
func (s *sayings) word(text string) bool {
	made := func(f *regexp.Regexp) bool { return f.MatchString(text) }
	key, value, _ := strings.Cut(text, ": ")
	key = key[strings.LastIndex(key, ".")+1:]
	keyed := strings.Contains(s.schema, `"`+key+`"`) && (value == "" || strings.Contains(s.schema, `"`+value+`"`))
	return s.literals[text] || slices.ContainsFunc(s.formats, made) || keyed || verbs.MatchString(text)
}

// begins reports whether a text that is left off is the beginning of one of the program's.
func (s *sayings) begins(text string) bool {
	text, is := strings.CutSuffix(text, "…")
	return is && len(text) > 5 && slices.ContainsFunc(slices.Collect(maps.Keys(s.literals)), func(l string) bool { return strings.HasPrefix(l, text) })
}

// composed reports whether a text is one of the program's and what follows it, or a deed and its object.
func (s *sayings) composed(text string) bool {
	if deed := regexp.MustCompile(`^([a-z ]+) [A-Z]\w+ [a-z]+/[a-z]+$`).FindStringSubmatch(text); deed != nil {
		return s.literals[deed[1]]
	}
	if regexp.MustCompile(`^[a-z.]+ changed by \S+$`).MatchString(text) {
		return s.literals[" changed"] && s.literals[" by "]
	}
	if first, rest, is := strings.Cut(text, "are "); is && s.literals[first+"are "] {
		return s.says(rest)
	}
	if first, _, is := strings.Cut(text, "; account "); is {
		return s.literals["; account "] && s.says(first)
	}
	for i := range text {
		for _, mark := range []string{": ", "; "} {
			if rest, is := strings.CutPrefix(text[i:], mark); is && (s.literals[text[:i]+mark] || s.says(text[:i])) && s.says(rest) {
				return true
			}
		}
	}
	return false
}

// check reports whether a text is a line of /readyz?verbose, or the beginning of one.
func (s *sayings) check(text string) bool {
	line := regexp.MustCompile(`^(\[[!+-]\])([a-z]+/?)(\S*?)(?: (degraded|ok): (.*))?$`).FindStringSubmatch(text)
	if line == nil {
		return text == "[!]" || text == "[-]" || s.literals[text]
	}
	return s.literals[line[2]] && (line[4] == "" || s.literals[line[4]] && s.says(line[5]))
}

func (s *sayings) all(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !s.literals[text] })
}

// command reports whether there is a command of that name.
func (s *sayings) command(name string) bool {
	for text := range s.literals {
		if text == name || strings.HasPrefix(text, name+" --config") || text == name+" RESOURCE/NAME" {
			return true
		}
	}
	return false
}

// metrics are the operator's own.
func (s *sayings) metrics() map[string]string {
	out := map[string]string{}
	for text := range s.literals {
		if regexp.MustCompile(`^handwerk_[a-z_]*[a-z]$`).MatchString(text) {
			out[text] = "metric"
		}
	}
	return out
}

// listen reads the program's source.
func listen(t *testing.T) *sayings {
	t.Helper()
	out := &sayings{
		literals: map[string]bool{}, lines: map[string]string{}, reasons: map[string]string{},
		schema: readPage(t, "../docs/operator.schema.json"),
	}
	for _, root := range []string{"../engine", "../sandbox", "../cmd", "../dsl", "../handlers"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if entry.IsDir() && entry.Name() == "e2e" {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				out.take(file, strings.TrimPrefix(path, "../"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// take notes what a file can say.
func (s *sayings) take(file *ast.File, path string) {
	names := map[string]string{} // of constants
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					names[name.Name] = literal(n.Values[i])
				}
				if text := names[name.Name]; strings.HasPrefix(name.Name, "reason") && text != "" && (strings.HasPrefix(path, "engine/") || strings.HasPrefix(path, "handlers/apply/")) {
					s.reasons[text] = path
				}
			}
		case *ast.BasicLit:
			if text := literal(n); text != "" {
				s.literals[text] = true
				s.format(text)
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			s.call(n, names, path)
		case *ast.CompositeLit:
			s.note(n, path)
			return !levelled(n)
		case *ast.KeyValueExpr:
			s.failure(n.Key, n.Value, path)
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if field, is := to.(*ast.SelectorExpr); is && len(n.Rhs) == len(n.Lhs) {
					s.failure(field.Sel, n.Rhs[i], path)
				}
			}
		}
		return true
	})
}

// note notes the reason of the Event in a reconcile's note.
func (s *sayings) note(of *ast.CompositeLit, path string) {
	if name, is := of.Type.(*ast.Ident); !is || name.Name != "Note" {
		return
	}
	for _, e := range of.Elts {
		pair, is := e.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		if name, is := pair.Key.(*ast.Ident); is && name.Name == "Reason" && literal(pair.Value) != "" {
			s.reasons[literal(pair.Value)] = path
		}
	}
}

// levelled reports whether a literal is a reconcile's note for those who ask for detail.
func levelled(of *ast.CompositeLit) bool {
	return slices.ContainsFunc(of.Elts, func(e ast.Expr) bool {
		pair, is := e.(*ast.KeyValueExpr)
		if !is {
			return false
		}
		name, is := pair.Key.(*ast.Ident)
		return is && name.Name == "Level"
	})
}

// failure notes the line of a failure, which a field of it has; see attempt.Failure.
func (s *sayings) failure(field, value ast.Expr, path string) {
	name, is := field.(*ast.Ident)
	if text := literal(value); is && text != "" && strings.HasPrefix(path, "engine/") && (name.Name == "Line" || name.Name == "Final") {
		s.lines[text] = path
	}
}

// call notes what a call logs, or reports as an Event. What a handler of the samples or the elector's sink says
// is not the engine's.
func (s *sayings) call(call *ast.CallExpr, names map[string]string, path string) {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is || strings.HasPrefix(path, "handlers/") && !strings.Contains(path, "/apply/") {
		return
	}
	at := map[string]int{"Info": 0, "Error": 1, "warn": 2}
	i, is := at[method.Sel.Name]
	if !is || len(call.Args) <= i || detailed(method.X) {
		return
	}
	text := literal(call.Args[i])
	if name, is := call.Args[i].(*ast.Ident); is {
		text = names[name.Name]
	}
	switch {
	case text == "":
	case method.Sel.Name == "warn":
		s.reasons[text] = path
	default:
		s.lines[text] = path
	}
}

// detailed reports whether a logger is one for those who ask for detail: log.V(1).
func detailed(logger ast.Expr) bool {
	call, is := logger.(*ast.CallExpr)
	if !is {
		return false
	}
	method, is := call.Fun.(*ast.SelectorExpr)
	return is && (method.Sel.Name == "V" || detailed(method.X))
}

// format notes a text with verbs.
func (s *sayings) format(text string) {
	if !strings.Contains(text, "%") {
		return
	}
	pattern := regexp.MustCompile(`%[+#]?[a-z]`).ReplaceAllString(regexp.QuoteMeta(text), `.+`)
	if len(regexp.MustCompile(`[A-Za-z]`).FindAllString(strings.ReplaceAll(pattern, ".+", ""), -1)) >= 6 {
		s.formats = append(s.formats, regexp.MustCompile("^"+pattern+"$"))
	}
}

func literal(e ast.Expr) string {
	lit, is := e.(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}
