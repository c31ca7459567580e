// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// confinePrefix begins the only rule that --confine takes.
const confinePrefix = "namespace name matches "

// globShape matches a glob for names of namespaces.
var globShape = regexp.MustCompile(`^[-a-z0-9*?]{1,63}$`)

// parseConfine reads the rule of --confine, and returns its globs.
func parseConfine(rule string) (globs []string, err error) {
	list, is := strings.CutPrefix(strings.Join(strings.Fields(rule), " "), confinePrefix)
	if !is {
		return nil, fmt.Errorf("invalid value %q for --confine: want %sGLOB, as in 'namespace name matches preview-*,staging'", rule, confinePrefix)
	}
	for glob := range strings.SplitSeq(list, ",") {
		glob = strings.TrimSpace(glob)
		if !globShape.MatchString(glob) {
			return nil, fmt.Errorf("invalid value %q for --confine: %q is no name of a namespace with * for any characters and ? for one", rule, glob)
		}
		globs = append(globs, glob)
	}
	return globs, nil
}

// confinement has the data for the policy that confines the operator's account. All fields are parts of CEL expressions.
type confinement struct {
	// Pattern is a regular expression for the names of namespaces, and Account the user name of the operator's account.
	Pattern, Account string
	// Rule is the rule for people.
	Rule string
	// Resources are lists of resources whose objects the account may write anywhere, and Objects are the objects that the
	// engine keeps for itself, as namespace/resource/name.
	Resources, Objects string
}

// newConfinement returns the data for a valid rule.
func newConfinement(f *bundleFlags, op *dsl.Operator) *confinement {
	globs, _ := parseConfine(f.confine) // the flag is checked
	pattern := strings.NewReplacer("*", ".*", "?", ".").Replace(strings.Join(globs, "|"))
	resources := []string{"events", "events.events.k8s.io"}
	for _, r := range op.Handled() {
		if !dsl.BuiltIn(r.Name.Group) {
			resources = append(resources, r.Name.Resource+"."+r.Name.Group)
		}
	}
	own := cmp.Or(op.Settings.LeaderElection.Namespace, f.namespace) + "/"
	objects := []string{own + "leases.coordination.k8s.io/" + op.LeaderLock(), own + "secrets/" + op.DigestKey()}
	for _, one := range append([]*dsl.Operator{op}, op.Earlier()...) {
		objects = append(objects, own+"configmaps/"+one.Register())
	}
	return &confinement{
		Pattern: "^(" + pattern + ")$", Account: "system:serviceaccount:" + f.namespace + ":" + objectName(op.Name),
		Rule: confinePrefix + strings.Join(globs, ","), Resources: celList(resources), Objects: celList(objects),
	}
}

// celList returns texts as a list of CEL, sorted. No text has quotes.
func celList(texts []string) string {
	slices.Sort(texts)
	return "['" + strings.Join(slices.Compact(texts), "', '") + "']"
}

// builtInHandled returns the built-in resources that the operator handles, for people.
func builtInHandled(op *dsl.Operator) (out []string) {
	for _, r := range op.Handled() {
		if dsl.BuiltIn(r.Name.Group) {
			out = append(out, r.Name.Resource)
		}
	}
	return out
}
