// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

type limits struct {
	Deletions deletionLimits `yaml:"deletions" required:"true" doc:"Limits of deletions: of children that the operator deletes, and of objects whose delete handlers begin. Deletions beyond a limit wait; operator release lets them go. They do not bound the garbage collector."`
}

type deletionLimits struct {
	PerMinute bound   `yaml:"perMinute" default:"100" doc:"How many deletions may begin in any minute, or unlimited. The others wait for their turn."`
	Share     percent `yaml:"share" default:"30%" doc:"The part of the objects of a kind, from 20 objects on. If more of them are to be deleted at the same time, the deletions wait until operator release. 100% holds nothing."`
}

// limits returns the limits in the form of the engine.
func (l *limits) limits() dsl.Limits {
	return dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: int(l.Deletions.PerMinute), Share: int(l.Deletions.Share)}}
}

// bound is a number, or unlimited.
type bound int

const unlimited = "unlimited"

// ReadForm accepts a number of 1 at least, and the word.
func (b *bound) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && n.Value == unlimited {
		*b = dsl.Unlimited
		return true
	}
	number, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || number < 1 {
		d.FaultAt(n, at, "want a number of 1 at least, or %s, found %s", unlimited, form.Found(n))
		return false
	}
	*b = bound(number)
	return true
}

// DescribeForm describes both.
func (*bound) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "number or " + unlimited, OneOf: []*form.Schema{
		{Type: "integer", Minimum: new(1.0)}, {Type: "string", Enum: []string{unlimited}},
	}}
}

// percent is a percentage between 1 and 100.
type percent int

const percentPattern = `^([1-9][0-9]?|100)%$`

var validPercent = regexp.MustCompile(percentPattern)

// ReadForm accepts a number with a percent sign.
func (p *percent) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || !validPercent.MatchString(n.Value) {
		d.FaultAt(n, at, "want a percentage between 1%% and 100%%, such as 30%%, found %s", form.Found(n))
		return false
	}
	number, err := strconv.Atoi(strings.TrimSuffix(n.Value, "%"))
	*p = percent(number)
	return err == nil
}

// DescribeForm describes it.
func (*percent) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "percentage", Type: "string", Pattern: percentPattern, PatternErrorMessage: "want a percentage such as 30%"}
}
