// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// eventConfig is the configuration of event.
type eventConfig struct {
	Type    eventType `yaml:"type" default:"Normal" doc:"The type of the Event. Warning is for what somebody has to look at."`
	Reason  string    `yaml:"reason" required:"true" doc:"One CamelCase word for programs, as in ScaledUp; may have ${…}."`
	Message string    `yaml:"message" required:"true" doc:"A sentence for people; may have ${…}."`
}

// eventType is one of the two types that an Event may have.
type eventType string

// Choices returns the types of Kubernetes.
func (eventType) Choices() (string, []string) {
	return "type", []string{string(dsl.Normal), string(dsl.Warning)}
}

// mostEventReason is the API server's limit for an Event's reason, in bytes. The engine shortens the note itself.
const mostEventReason = 128

// event sends an Event of the object.
func event(cel compilerOf) actions.Action {
	return actions.Action{
		Name:      "event",
		Doc:       "Report a Kubernetes Event of the object; repeated ones are counted, too many different ones dropped.",
		OneObject: true,
		Config:    func() any { return new(eventConfig) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			return buildEvent(cel, b, config.(*eventConfig))
		},
	}
}

func buildEvent(cel compilerOf, b actions.Build, config *eventConfig) (actions.Built, error) {
	w, err := newWriter(cel, b)
	if err != nil {
		return actions.Built{}, err
	}
	kind := cmp.Or(dsl.EventType(config.Type), dsl.Normal)
	reason := w.template(config.Reason, nil, "event", "reason")
	if reason != nil && config.Reason != "" && len(reason.Programs()) == 0 && !conditionReason.MatchString(config.Reason) {
		w.fault([]string{"event", "reason"}, "want one CamelCase word, found %q", config.Reason)
	}
	message := w.template(config.Message, nil, "event", "message")
	if err := errors.Join(w.faults...); err != nil {
		return actions.Built{}, err
	}
	return w.built(func(_ context.Context, r *dsl.Request) error {
		scope := w.objectScope(r.Subject)
		why, err := text(reason, scope)
		if err != nil {
			return fmt.Errorf("reporting event: %w", err)
		}
		note, err := text(message, scope)
		if err != nil {
			return fmt.Errorf("reporting event: %w", err)
		}
		r.Events.Event(kind, plain.Short(why, mostEventReason), "%s", note)
		return nil
	}), nil
}
