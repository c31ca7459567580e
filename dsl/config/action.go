// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/handwerk-dev/handwerk/dsl"
)

// action builds the handler's code, nil when it is at fault.
func (w *watched) action(at path, h *handler) dsl.Func {
	action, found := w.registry.LookupAction(h.action)
	if !found || h.config == nil || h.With == nil && w.has(at.key("with")) {
		return nil
	}
	build := dsl.Build{Registry: w.registry, Params: h.With, Resource: w.out.Name}
	fn, err := action.Build(build, h.config)
	for _, err := range flatten(err) {
		place := at.key(h.action)
		if faulty, ok := errors.AsType[*dsl.ConfigError](err); ok {
			place = w.step(at, faulty.Path)
		}
		w.fault(place, "%v", err)
	}
	if err == nil && fn == nil {
		w.fault(at.key(h.action), "the action made no handler")
	}
	return fn
}

// step follows the steps of an action's fault; those that are numbers may be indexes of a list.
func (w *watched) step(at path, steps []string) path {
	for _, step := range steps {
		if i, err := strconv.Atoi(step); err == nil && w.has(at.index(i)) {
			at = at.index(i)
			continue
		}
		at = at.key(step)
	}
	return at
}

// described says for people what a handler does.
func described(h *handler) string {
	if name, ok := h.config.(*string); ok {
		return fmt.Sprintf("%s: %s", h.action, *name)
	}
	return h.action
}
