// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/cmd/door"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// whyFlags are the flags of the command why.
type whyFlags struct {
	askFlags
	namespace string
	history   bool
}

func (p *program) whyCommand() *cobra.Command {
	f := &whyFlags{}
	c := &cobra.Command{
		Use:   "why RESOURCE/NAME",
		Short: "Ask a running operator why it did something to an object, or did not",
		Long: `Ask the process of an operator that leads about one object: each handler with the reason
for which it ran or did not, its conditions with the values that decided, its last attempt
and what had changed then; children with their readiness; what holds a deletion; missing
rights; the states of machines.

RESOURCE is as in kubectl: a kind, the plural, the singular or a short name, with the
group behind a dot if need be. The process is found as by operator status. If it does not
answer, the API server is asked with your own rights: what operators have stored on the
object of handlers and children, its conditions, and Events. Nothing is changed.`,
		Example: `  operator why webapp/shop -n shop

  # what happened, in order
  operator why webapps.example.com/shop -n shop --history`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := f.question(args)
			return err
		},
		RunE: func(c *cobra.Command, args []string) error {
			q, _ := f.question(args)
			return p.why(c.Context(), f, q, c.OutOrStdout())
		},
	}
	set := c.Flags()
	addObjectNamespace(set, &f.namespace)
	set.BoolVar(&f.history, "history", false, "also list the last reconciles of the object")
	f.add(set)
	completeChoices(c)
	return c
}

// question reads the arguments.
func (f *whyFlags) question(args []string) (q why.Question, err error) {
	if len(args) != 1 {
		return q, errors.New("want one RESOURCE/NAME, as in webapp/shop")
	}
	resource, name, both := strings.Cut(args[0], "/")
	if !both || resource == "" || name == "" {
		return q, fmt.Errorf("want RESOURCE/NAME, as in webapp/shop, found %q", args[0])
	}
	return why.Question{Resource: resource, Namespace: f.namespace, Name: name, History: f.history}, withoutNamespace(resource, name)
}

// why asks about an object, and writes the answer.
func (p *program) why(ctx context.Context, f *whyFlags, q why.Question, out io.Writer) error {
	op, err := p.declared(f.config)
	if err != nil {
		return err
	}
	config, namespace, unreached := p.access(ctx, &f.kube)
	q.Namespace = cmp.Or(q.Namespace, namespace, metav1.NamespaceDefault)
	a, answers, err := p.askWhy(ctx, f, q)
	if refused, is := errors.AsType[*apierrors.StatusError](err); answers && is && refused.Status().Code < http.StatusInternalServerError {
		return err // it does not handle such objects, or several kinds of them
	}
	if errors.Is(err, door.ErrAddress) {
		return err
	}
	if err != nil && unreached == nil {
		var alone error
		if a, alone = readAlone(ctx, config, q, f.asked(op), err); alone != nil {
			return errors.Join(err, alone)
		}
	} else if err != nil {
		return err
	}
	if a.Verdict == "" {
		a.Judge()
	}
	if err := f.write(out, a, func() error {
		var page bytes.Buffer
		if err := why.Text(&page, a, p.colors()); err != nil {
			return err
		}
		return p.people(out, &page)
	}); err != nil {
		return err
	}
	if a.Unseen == why.NoObject {
		return fmt.Errorf("%s %q not found", q.Resource, q.Name)
	}
	return nil
}

// asked is the name of the operator that is asked; empty if none is named. The operator is that of the configuration, nil if none was given.
func (f *whyFlags) asked(op *dsl.Operator) string {
	if op != nil && f.target.Operator == "" {
		return op.Name
	}
	return f.target.Operator
}

// askWhy asks the operator. Answers: there is one, so an error may be its own.
func (p *program) askWhy(ctx context.Context, f *whyFlags, q why.Question) (a *why.Answer, answers bool, err error) {
	process, _, err := p.open(ctx, &f.askFlags)
	if err != nil {
		return nil, false, err
	}
	defer process.Close()
	a = &why.Answer{}
	return a, true, process.Ask(ctx, why.Asked, q.Values(), a)
}
