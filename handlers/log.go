// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// logConfig is the configuration of log.
type logConfig struct {
	Message string         `yaml:"message" required:"true" doc:"The message of the line; may have ${…}."`
	Level   logLevel       `yaml:"level" default:"info" doc:"The level of the line. debug is written only with --zap-log-level=debug."`
	Values  map[string]any `yaml:"values" doc:"More keys and values of the line; values may have ${…}."`
}

// logLevel is the level of a line.
type logLevel string

// Choices returns the levels.
func (logLevel) Choices() (string, []string) { return "level", []string{"info", "debug"} }

// mostLogged is how many bytes of a message are logged, because container runtimes break longer lines.
const mostLogged = 16 << 10

// logLine writes a line to the operator's log.
func logLine(cel compilerOf) actions.Action {
	return actions.Action{
		Name:   "log",
		Doc:    "Write a line to the operator's log.",
		Config: func() any { return new(logConfig) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			return buildLog(cel, b, config.(*logConfig))
		},
	}
}

func buildLog(cel compilerOf, b actions.Build, config *logConfig) (actions.Built, error) {
	w, err := newWriter(cel, b)
	if err != nil {
		return actions.Built{}, err
	}
	level := 0
	if config.Level == "debug" {
		level = 1
	}
	message := w.template(config.Message, nil, "log", "message")
	values := w.template(config.Values, nil, "log", "values")
	if err := errors.Join(w.faults...); err != nil {
		return actions.Built{}, err
	}
	return w.built(func(_ context.Context, r *dsl.Request) error {
		scope := w.objectScope(r.Subject)
		line, err := text(message, scope)
		if err != nil {
			return fmt.Errorf("writing log line: %w", err)
		}
		pairs, err := pairsOf(values, scope)
		if err != nil {
			return fmt.Errorf("writing log line: %w", err)
		}
		r.Log.V(level).Info(plain.Short(line, mostLogged), append(pairs, logmark.Quoted, true)...)
		return nil
	}), nil
}

// pairsOf renders the values of a line, sorted by key.
func pairsOf(values *expr.Template, scope expr.Scope) ([]any, error) {
	rendered, err := values.Render(scope)
	if err != nil {
		return nil, err
	}
	tree, _ := rendered.(map[string]any)
	var pairs []any
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		pairs = append(pairs, key, tree[key])
	}
	return pairs, nil
}
