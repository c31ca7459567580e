// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// defaultLimit is how many children of one name there may be unless limit says otherwise.
const defaultLimit = 1000

// several reads forEach and what belongs to it.
func (p *parser) several(c *child, at []string, tree map[string]any) {
	if !has(tree, "forEach") {
		for _, option := range []string{"key", "limit", "rollout"} {
			if has(tree, option) {
				p.fault(below(at, option), "is for children with forEach")
			}
		}
		return
	}
	switch elements := tree["forEach"].(type) {
	case []any, map[string]any:
	case string:
		if _, constant := p.constant(elements); constant {
			p.fault(below(at, "forEach"), "want a list or a map, mostly an expression as in ${self.spec.users}")
		}
	default:
		p.fault(below(at, "forEach"), "want a list or a map, mostly an expression as in ${self.spec.users}")
	}
	if c.forEach = p.tree(p.one, tree["forEach"], below(at, "forEach")); c.forEach == nil {
		c.forEach = &expr.Template{} // so that what else is wrong with it can be told
	}
	p.keyOf(c, at, tree)
	if limit, given := tree["limit"]; given {
		n, whole := limit.(int64)
		if !whole || n < 1 {
			p.fault(below(at, "limit"), "want a whole number of at least 1")
		}
		c.limit = int(n)
	}
	if config, given := tree["rollout"]; given {
		c.rollout = p.rollout(below(at, "rollout"), config)
	}
}

func (p *parser) keyOf(c *child, at []string, tree map[string]any) {
	config, given := tree["key"]
	if !given {
		return
	}
	at = below(at, "key")
	if _, isText := config.(string); !isText {
		p.fault(at, "want an expression as in ${item.name}")
		return
	}
	if _, constant := p.constant(config); constant {
		p.fault(at, "is the same for every item: want an expression as in ${item.name}")
	}
	c.key = p.tree(p.each, config, at)
}

// ownership reads how a child is tied to its owner.
func (p *parser) ownership(c *child, at []string, tree map[string]any) {
	c.spec.Ownership = word(p, at, tree, "ownership", dsl.Owned, dsl.Labelled, dsl.Unowned)
	c.spec.Adopt = word(p, at, tree, "adopt", dsl.AdoptNever, dsl.AdoptIfUnowned)
	c.spec.OnDelete = word(p, at, tree, "onDelete", dsl.DeleteChild, dsl.OrphanChild, dsl.RetainChild)
	if err := c.spec.Validate(); err != nil {
		p.fault(below(at, "onDelete"), "%v", err)
	}
}

// word reads one of a few words, the empty one when it is not given.
func word[T ~string](p *parser, at []string, tree map[string]any, key string, known ...T) T {
	config, given := tree[key]
	if !given {
		return ""
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	text, isText := config.(string)
	if isText && slices.Contains(words, text) {
		return T(text)
	}
	hint := "want one of " + strings.Join(words, ", ")
	if meant, near := dsl.Nearest(text, words); near && isText {
		hint = fmt.Sprintf("did you mean %q?", meant)
	}
	p.fault(below(at, key), "unknown %s %v (%s)", key, config, hint)
	return ""
}

// rollout is how children of one name are updated.
type rollout struct {
	// most is how many may be unready at a time, or how many in a hundred.
	most    int
	percent bool
	ready   *condition
}

// allowed returns how many of so many children may be unready at a time.
func (r *rollout) allowed(of int) int {
	if !r.percent {
		return r.most
	}
	return max((of*r.most+99)/100, 1)
}

var percentage = regexp.MustCompile(`^([0-9]{1,3})%$`)

func (p *parser) rollout(at []string, config any) *rollout {
	out := &rollout{}
	tree, isMap := config.(map[string]any)
	if !isMap {
		p.fault(at, "want a map, as in {maxUnavailable: 1}")
		return out
	}
	p.unknown(at, tree, []string{"maxUnavailable", "readyWhen"})
	most := tree["maxUnavailable"]
	number, isNumber := most.(int64)
	text, _ := most.(string)
	match := percentage.FindStringSubmatch(text)
	switch {
	case isNumber:
		out.most = int(number)
	case match != nil:
		out.most, _ = strconv.Atoi(match[1])
		out.percent = true
	default:
		out.most = 0
	}
	if out.most < 1 || out.percent && out.most > 100 {
		p.fault(below(at, "maxUnavailable"), "want a whole number of at least 1, or a percentage as in 25%%")
	}
	when := any("ready(child)")
	if given, found := tree["readyWhen"]; found {
		when = given
	}
	out.ready = p.predicate(p.eachLive, below(at, "readyWhen"), when)
	return out
}

// predicates reads includeWhen and readyWhen.
func (p *parser) predicates(c *child, at []string, tree map[string]any) {
	wanted, made := p.one, p.oneLive
	if c.forEach != nil {
		wanted, made = p.each, p.eachLive
	}
	if config, given := tree["includeWhen"]; given {
		c.include = p.predicate(wanted, below(at, "includeWhen"), config)
	}
	if config, given := tree["readyWhen"]; given {
		c.ready = p.predicate(made, below(at, "readyWhen"), config)
	}
}

// condition is a predicate with its place.
type condition struct {
	program *expr.Program
	at      []string
	// column is where the expression begins in its text, from 1.
	column int
}

// predicate compiles one that is CEL alone or stands in ${…}, nil when it is at fault.
func (p *parser) predicate(c *expr.Compiler, at []string, config any) *condition {
	text, isText := config.(string)
	if always, isBool := config.(bool); isBool {
		text, isText = strconv.FormatBool(always), true
	}
	if text = strings.TrimRight(text, " \n"); !isText || text == "" {
		p.fault(at, "want an expression that is true or false")
		return nil
	}
	out := &condition{at: slices.Concat([]string{action}, at), column: 1}
	if inner, only := within(text); only {
		text, out.column = inner, len("${")+1
	}
	program, err := c.Compile(text)
	if err != nil {
		p.faults = append(p.faults, out.placed(err)...)
		return nil
	}
	out.program = program
	return out
}

// within returns the expression that a text is when it is one ${…}.
func within(text string) (string, bool) {
	inner, begins := strings.CutPrefix(text, "${")
	inner, ends := strings.CutSuffix(inner, "}")
	return inner, begins && ends && !strings.Contains(inner, "${")
}

// placed gives the faults of the expression their place in the configuration.
func (c *condition) placed(err error) (out []error) {
	if err == nil {
		return nil
	}
	faulty, ok := errors.AsType[*expr.Error](err)
	if !ok {
		return []error{&dsl.ConfigError{Path: c.at, Message: err.Error()}}
	}
	for _, issue := range faulty.Issues {
		if issue.Line == 1 {
			issue.Column += c.column - 1
		}
		out = append(out, &dsl.ConfigError{Path: c.at, Line: issue.Line, Column: issue.Column, Message: issue.Message})
	}
	return out
}
