// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The limits of the API server for the cost of rules, in the units of CEL: of each rule, and of all rules of a CRD
// together.
const (
	mostOfARule = 10_000_000
	mostOfAll   = 100_000_000
)

// unlimited is the size of a list or map without a limit.
const unlimited = math.MaxUint64

// rules checks the rules of a schema.
func (b *builder) rules(root *structural.Structural, faulty bool) {
	c := &ruleChecker{builder: b, faulty: faulty}
	c.check(nil, root, within{most: 1, root: true})
	if c.total > mostOfAll && !c.dear {
		c.faultAt(c.dearest, "the rules of this schema cost too much together, and this one most: their cost "+exceeds(c.total, mostOfAll))
	}
}

// ruleChecker checks rules, and adds up their costs.
type ruleChecker struct {
	*builder
	// faulty: the schema has a fault already, so rules may refer to missing parts.
	faulty bool
	// dear: one rule alone is too expensive.
	dear bool
	// total is the cost of all rules, most that of the most expensive one.
	total, most uint64
	dearest     steps
}

// within describes what contains a part of a schema.
type within struct {
	// most is how often an object can have this part.
	most uint64
	root bool
	// forgotten says why a part cannot be compared with its old value; empty if it can.
	forgotten string
}

// check checks the rules of a part of the schema and of what is below it.
func (c *ruleChecker) check(at steps, s *structural.Structural, in within) {
	if len(s.XValidations) > 0 {
		c.compile(at, s, in)
	}
	below := within{most: in.most, forgotten: in.forgotten}
	if below.forgotten == "" && s.XMapType != nil && *s.XMapType == "atomic" {
		below.forgotten = "fields of an atomic map cannot be compared with what they were"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		c.check(at.to("properties", name), &p, below)
	}
	v := s.ValueValidation
	if v == nil {
		v = &structural.ValueValidation{}
	}
	if s.Items != nil {
		below := within{most: times(in.most, limit(v.MaxItems)), forgotten: in.forgotten}
		if below.forgotten == "" && (s.XListType == nil || *s.XListType != "map") {
			below.forgotten = "elements of a list cannot be compared with what they were (unless the list has listMapKey)"
		}
		c.check(at.to("items"), s.Items, below)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		below := within{most: times(in.most, limit(v.MaxProperties)), forgotten: in.forgotten}
		c.check(at.to("additionalProperties"), s.AdditionalProperties.Structural, below)
	}
}

// compile checks the rules of one part.
func (c *ruleChecker) compile(at steps, s *structural.Structural, in within) {
	at = at.to("x-kubernetes-validations")
	declared := model.SchemaDeclType(s, in.root || s.XEmbeddedResource)
	if declared == nil {
		c.faultAt(at, "there can be no rules here, because the type is not known")
		return
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, err := cel.Compile(s, declared, limits.PerCallLimit, base, cel.NewExpressionsEnvLoader())
	if err != nil {
		c.faultAt(at, err.Error())
		return
	}
	for i, result := range results {
		at := at.to(strconv.Itoa(i))
		if result.Error != nil {
			c.wrong(at.to("rule"), result.Error.Detail)
		}
		if result.MessageExpressionError != nil {
			c.wrong(at.to("messageExpression"), result.MessageExpressionError.Detail)
		}
		most := in.most
		if most == unlimited {
			most = result.MaxCardinality
		}
		c.cost(at.to("rule"), times(result.MaxCost, most))
		c.cost(at.to("messageExpression"), result.MessageExpressionMaxCost)
		if result.UsesOldSelf && in.forgotten != "" {
			c.faultAt(at.to("rule"), in.forgotten)
		}
	}
}

// cost notes the cost of an expression.
func (c *ruleChecker) cost(at steps, cost uint64) {
	if cost > mostOfARule {
		c.dear = true
		c.faultAt(at, "the cost of this rule "+exceeds(cost, mostOfARule))
	}
	if cost > c.most {
		c.most, c.dearest = cost, at
	}
	if c.total += cost; c.total < cost { // an overflow
		c.total = unlimited
	}
}

// exceeds says by how much a cost exceeds a limit, and how to reduce it.
func exceeds(cost, limit uint64) string {
	factor := "more than 100"
	if f := float64(cost) / float64(limit); f <= 100 {
		factor = fmt.Sprintf("%.2f", f)
	}
	return "exceeds budget by a factor of " + factor +
		" (simplify it, or limit what it looks at: maxItems for lists, maxProperties for maps, maxLength for text)"
}

// issue matches a fault in CEL's messages.
var issue = regexp.MustCompile(`(?m)ERROR: <input>:(\d+):(\d+): (.*)$`)

// wrong notes the compiler's faults of an expression.
func (c *ruleChecker) wrong(at steps, detail string) {
	issues := issue.FindAllStringSubmatch(detail, -1)
	if issues == nil {
		c.faultAt(at, detail)
	}
	for _, m := range issues {
		if c.faulty && strings.HasPrefix(m[3], "undefined field") {
			continue
		}
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		c.faultAtLine(at, line, column, strings.ReplaceAll(m[3], " (in container '')", ""))
	}
}

// limit returns the most elements of a list or map.
func limit(given *int64) uint64 {
	if given == nil {
		return unlimited
	}
	return uint64(max(*given, 0))
}

// times multiplies, up to unlimited.
func times(a, b uint64) uint64 {
	if a != 0 && b > unlimited/a {
		return unlimited
	}
	return a * b
}
