// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package play runs an operator while its author writes it: against an API server in the process, or a cluster that
// exists, and again from the start whenever its configuration changes.
package play

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/activity"
)

// Settings say what is played and where.
type Settings struct {
	// Paths are the files and directories of the configuration. Without them the operator is one in Go alone.
	Paths []string
	// Beside is the directory with the operator's CRDs and examples where Paths are empty. Optional.
	Beside string
	// Load reads the operator from the paths. Required.
	Load func() (*dsl.Operator, error)
	// Explain returns the words for an error of Load. Defaults to those of the error.
	Explain func(error) string
	// Examples creates the objects in files beside the configuration whose names begin with "example".
	Examples bool
	// Cluster is an existing cluster to work in; nil means an API server in the process.
	Cluster *rest.Config
	// Keep is a directory with the state of the API server, for the next play. Empty means that nothing is kept.
	Keep string
	// Namespace is that of the operator's own objects, and of examples without one. Required.
	Namespace string
	// Last, if set, is called with what is still to be done where the process ends before Run has returned.
	Last func(do func())
	// Out gets a line for each thing that happens. Required.
	Out io.Writer
	// Color says that Out shows colors.
	Color bool
	// Adopt, if set, receives the logger for what the process logs without one, as client-go does, and its verbosity.
	Adopt func(log logr.Logger, verbosity int)
}

// Run plays until ctx ends. The error says why nothing could be played. What is at fault later, such as a
// configuration that has changed, is written to Out, and what was there before goes on.
func Run(ctx context.Context, s Settings) error {
	lines := newLines(s.Out, s.Color)
	if s.Adopt != nil {
		s.Adopt(lines.logger(), 0)
	}
	files := newFiles(s.Paths, s.Beside)
	op, err := s.Load()
	if err != nil {
		return err
	}
	place, err := s.place(ctx, op.Name, lines)
	if err != nil {
		return err
	}
	defer place.close()
	p := &player{Settings: s, place: place, lines: lines, files: files, refused: map[string]bool{}}
	return p.play(ctx, op)
}

// player plays one configuration.
type player struct {
	Settings
	place *place
	lines *lines
	files *files
	// refused are the files with an object that was refused.
	refused   map[string]bool
	questions questions
}

// play runs op, and after each change of the files the operator that they have then.
func (p *player) play(ctx context.Context, op *dsl.Operator) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := p.files.watch(ctx)
	things := p.things(op)
	p.create(ctx, things.crds)
	e, err := p.make(ctx, op)
	switch {
	case ctx.Err() != nil:
		return nil // Ctrl-C, before it ran
	case err != nil:
		return err
	}
	p.questions.engine.Store(e)
	defer p.answer(ctx, op.Name)()
	turn := run(ctx, op, nil, e)
	if p.Examples {
		p.examples(ctx, turn, things.examples)
	}
	for {
		select {
		case <-ctx.Done():
			return turn.stop()
		case <-turn.ended():
			turn = p.after(ctx, turn)
		case names := <-changed:
			turn = p.again(ctx, turn, names)
		}
	}
}

// after reports why a turn has ended by itself, and returns the one that goes on: of the operator before, if a startup of
// the new one has failed.
func (p *player) after(ctx context.Context, ended *turn) *turn {
	err := ended.stop()
	if _, unstarted := errors.AsType[*activity.StartupError](err); unstarted && ended.before != nil && ctx.Err() == nil {
		p.lines.fault("the last configuration goes on", err)
		return p.replace(ctx, nil, ended.before)
	}
	p.lines.fault("", err)
	if ctx.Err() == nil {
		p.lines.say("the operator has ended; it starts again when a file changes")
	}
	return nil
}

// again takes in files that have changed, and returns the turn that goes on.
func (p *player) again(ctx context.Context, last *turn, names []string) *turn {
	op, err := p.Load()
	if err != nil {
		p.lines.faults("the configuration has changed, and the last one goes on", p.explain(err))
		return last
	}
	things := p.things(op)
	p.create(ctx, things.crds)
	next := last
	if last == nil || slices.ContainsFunc(names, p.ofOperator) {
		p.lines.say("%s changed: the operator starts again", strings.Join(names, ", "))
		next = p.replace(ctx, last, op)
	}
	if p.Examples {
		p.examples(ctx, next, p.due(things.examples, names))
	}
	return next
}

// replace runs op in the place of the last operator, which goes on if op cannot be run.
func (p *player) replace(ctx context.Context, last *turn, op *dsl.Operator) *turn {
	e, err := p.make(ctx, op)
	if err != nil {
		p.lines.fault("the last configuration goes on", err)
		return last
	}
	if err := last.stop(); err != nil {
		p.lines.fault("stopping operator", err)
	}
	p.questions.engine.Store(e)
	return run(ctx, op, last.operator(), e)
}

func (p *player) explain(err error) string {
	if p.Explain != nil {
		return p.Explain(err)
	}
	return err.Error()
}
