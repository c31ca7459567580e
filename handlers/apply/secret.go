// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// naming returns the expressions for the child's name and kind.
func (c *child) naming() []*expr.Program {
	metadata := part(c.template, "metadata")
	if metadata == nil || len(metadata.Entries) == 0 {
		return c.programs()
	}
	var out []*expr.Program
	for _, t := range []*expr.Template{
		c.forEach, c.key, part(c.template, "apiVersion"), part(c.template, "kind"), part(metadata, "name"), part(metadata, "namespace"),
	} {
		if t != nil {
			out = append(out, t.Programs()...)
		}
	}
	return out
}

// hides reports whether the child's name may contain a value of a Secret. People then see the words of the
// configuration instead.
func (c *child) hides(secrets dsl.Secrets) bool {
	if !secrets.Read {
		return false
	}
	programs := c.naming()
	items := c.entry && slices.ContainsFunc(programs, func(one *expr.Program) bool { return slices.ContainsFunc(expr.ItemVariables(), one.Uses) })
	return items || secrets.In(expr.ReadsOf(programs...).Values)
}

// elementLabel names a child of the configuration, or one of several by its element, for people.
func (c *child) elementLabel(e expr.Element, secrets dsl.Secrets) string {
	if index, several := e.Vars[expr.Index]; several && c.forEach != nil && c.hides(secrets) {
		return fmt.Sprintf("child %s (item %d)", c.name, index)
	}
	return c.label(e.Key)
}

// CheckData returns an error if the API server would reject the data of an object that was made from a template. A key that the template
// computes from a Secret is not named.
func CheckData(t *expr.Template, object map[string]any, secrets dsl.Secrets) error {
	err := dsl.CheckData(&unstructured.Unstructured{Object: object}, secrets.Read)
	if wrong, is := errors.AsType[*dsl.DataError](err); is && wrong.Hidden {
		for field := range strings.SplitSeq(wrong.Field, ".") {
			t = part(t, field)
		}
		wrong.Hidden = part(t, wrong.Key) == nil
	}
	return err
}

// hidden hides the text of an error of an object whose name must not be shown, except for messages without the
// name: those of the API server with a known reason, and those of waits.
func hidden(err error) error {
	_, withheld := errors.AsType[*dsl.WithheldError](err)
	_, judged := errors.AsType[*verdict](err)
	_, waits := dsl.IsWaiting(err)
	if err == nil || withheld || judged || waits {
		return err
	}
	return &verdict{reasonFailed, &unsaid{err}}
}

// unsaid is an error whose text is hidden.
type unsaid struct{ error }

// Error says only that it failed.
func (e *unsaid) Error() string {
	return "it cannot be applied (no more is shown, for its name may be a Secret's value)"
}

// Unwrap returns the original error.
func (e *unsaid) Unwrap() error { return e.error }
