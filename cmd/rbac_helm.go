// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const (
	// helmValues is the format of rbac for values of the chart.
	helmValues = "helm"
	// releaseNamespace stands for the chart's namespace. It is not a valid name, so no namespace can have it.
	releaseNamespace = ".Release.Namespace"
)

// checkHelm reports flags that values of the chart cannot express.
func (f *rbacFlags) checkHelm() error {
	switch {
	case f.output != helmValues:
		return nil
	case f.check:
		return errors.New("-o helm prints values, which --check does not")
	case f.run.set.Changed("service-account"):
		return errors.New("-o helm has no value for --service-account: the chart names the account")
	case f.run.set.Changed("namespace"):
		return errors.New("-o helm has no value for --namespace: set scope.namespaces in the configuration, which the hook reads too")
	default:
		return nil
	}
}

// asInChart sets the operator's settings to those of the chart, unless flags override them.
func (f *rbacFlags) asInChart(op *dsl.Operator) {
	if mode := &op.Settings.LeaderElection.Mode; *mode != dsl.LeaderLife && !f.run.set.Changed("leader-elect") {
		*mode = dsl.LeaderLease
	}
	if !f.run.set.Changed(ops.SecureFlag) {
		f.run.secure = true
	}
}

// writeValues writes rights as values of the chart: each with the handlers that need it, and the reason.
func (f *rbacFlags) writeValues(w io.Writer, op *dsl.Operator, own, cleanup []rbac.Role) error {
	values := section{}
	values.put("operator", scalar(op.Name))
	values.put("leaderElection", scalar(string(op.Settings.LeaderElection.Mode)))
	if f.run.installs() {
		values.put("installCRDs", scalar(f.run.installCRDs))
	}
	metrics := section{}
	metrics.put("secure", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(f.run.secure)})
	values.put("metrics", metrics.node())
	if grace := graceOf(op); grace != graceOf(&dsl.Operator{}) {
		values.put("terminationGracePeriodSeconds", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(grace)})
	}
	values.put("rbac", ruleValues(own))
	hook := section{}
	hook.put("rbac", ruleValues(cleanup))
	values.put("cleanup", hook.node())
	all := values.node()
	all.Content[0].HeadComment = comment(f.head(op))
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	if err := out.Encode(all); err != nil {
		return fmt.Errorf("writing values: %w", err)
	}
	return out.Close()
}

// ruleValues returns the rules of roles by scope: in the cluster, in the namespace of the release, and in other
// namespaces by name.
func ruleValues(roles []rbac.Role) *yaml.Node {
	out, others := section{}, section{}
	for _, role := range roles {
		rules := nodeOf(ruleObjects(role))
		explain(rules, role)
		switch role.Namespace {
		case "":
			out.put("clusterRules", rules)
		case releaseNamespace:
			out.put("rules", rules)
		default:
			others.put(role.Namespace, rules)
		}
	}
	if len(others) > 0 {
		out.put("namespaces", others.node())
	}
	return out.node()
}

// section is an ordered map of values: keys and values alternate.
type section []*yaml.Node

func (s *section) put(key string, value *yaml.Node) { *s = append(*s, scalar(key), value) }

func (s section) node() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: s} }

// scalar returns a text as YAML, in quotes if it would otherwise have another type.
func scalar(value string) *yaml.Node {
	out := &yaml.Node{}
	out.SetString(value)
	if strings.HasPrefix(quoted(value), `"`) {
		out.Style = yaml.DoubleQuotedStyle
	}
	return out
}
