// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Named draws a machine. The text is the machine's name, or its resource, a slash and its name. The resource may be
// written as deployments, deployments.apps or deployments.v1.apps. A machine without a name is called machine. The
// error lists the machines.
func Named(op *dsl.Operator, text string) (Drawing, error) {
	resource, name, found := strings.Cut(text, "/")
	if !found {
		resource, name = "", text
	}
	type one struct {
		of      *dsl.Resource
		handler *dsl.Handler
	}
	var meant []one
	var all, near []string
	for _, r := range op.Resources() {
		for _, h := range r.Machines() {
			all = append(all, h.ID, r.Name.String()+"/"+h.ID)
			near = append(near, r.Name.String()+"/"+h.ID, r.Name.Resource+"/"+h.ID, strings.TrimSuffix(r.Name.Resource+"."+r.Name.Group, ".")+"/"+h.ID)
			if h.ID == name && (resource == "" || spells(resource, r.Name)) {
				meant = append(meant, one{r, h})
			}
		}
	}
	switch {
	case len(all) == 0:
		return Drawing{}, fmt.Errorf("drawing machine %s: %w", text, errNone)
	case len(meant) == 0:
		slices.Sort(all)
		if _, is := words.Nearest(text, near); is && found {
			all = near
		}
		return Drawing{}, fmt.Errorf("drawing machine %s: there is none of that name (%s)", text, words.Hint(text, slices.Compact(all)))
	case len(meant) > 1:
		var several []string
		for _, m := range meant {
			several = append(several, m.of.Name.String()+"/"+m.handler.ID)
		}
		return Drawing{}, fmt.Errorf("drawing machine %s: there are several of that name (want %s)", text, strings.Join(several, " or "))
	}
	return ofMachine(meant[0].of, meant[0].handler), nil
}

var errNone = errors.New("the operator has no machines")

// spells reports whether text names the resource, with or without its version and its group.
func spells(text string, name dsl.ResourceName) bool {
	given, err := dsl.ParseResourceName(text)
	return text == name.Resource || err == nil && given.Resource == name.Resource &&
		(given.Group == "" || given.Group == name.Group) && (given.Version == "" || given.Version == name.Version)
}

// ofMachine draws a machine of a resource.
func ofMachine(r *dsl.Resource, h *dsl.Handler) Drawing {
	title := "machine of " + r.Name.String()
	if h.Machine.Name != "" {
		title = "machine " + h.Machine.Name + " of " + r.Name.String()
	}
	made := map[string][]string{}
	for _, c := range r.Makes { // a maker is the machine, the state and the step, separated by dots
		if parts := strings.Split(c.Maker, "."); len(parts) > 1 && parts[0] == h.ID {
			made[parts[1]] = append(made[parts[1]], c.Name)
		}
	}
	return machine(h.Machine, title, made)
}
