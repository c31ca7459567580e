// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// releaser is the field manager of releases.
const releaser = "operator-release"

// releaseFlags are the flags of release.
type releaseFlags struct {
	which  whichFlags
	cause  string
	lasts  time.Duration
	dryRun bool
}

func (p *program) releaseDeletionsCommand() *cobra.Command {
	f := &releaseFlags{}
	c := &cobra.Command{
		Use:   "release [RESOURCE] --config FILE|DIR",
		Short: "Release deletions that a limit holds",
		Long: `Release deletions that settings.limits or the limits of a resource hold. It shows which
deletions wait, why they were begun and since when, and releases all of them, or those of
objects of one resource, or of one cause. For a while, such deletions begin without a
limit. The operator reads the release within a minute.

The causes: deletion, the objects or the owners of the children were deleted; namespace,
they are deleted with their namespace; selector, the objects have left a selector or the
filter of a handler; configuration, no handler makes such children any longer; handler, a
handler does not want the children any longer; recreation, a handler makes them again.

To prevent the deletions, take back what asks for them: deploy the configuration
from before, or set labels and lists as they were. Deletions that nothing asks for any
longer stop waiting by themselves. An object that is being deleted cannot be brought back.

It reads and writes the ConfigMap NAME-deletions in the operator's namespace, for which
you need the rights to get and patch it, and to list Leases, or to know the namespace.`,
		Example: `  operator release --config webapp --dry-run
  operator release websites --config webapp
  operator release --operator webapp --cause namespace --for 1h`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("want at most one resource")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return p.release(c.Context(), f, cmp.Or(append(args, "")...), c.OutOrStdout())
		},
	}
	set := c.Flags()
	var causes []string
	for _, cause := range limits.Causes() {
		causes = append(causes, string(cause))
	}
	set.Var(&choice{value: &f.cause, noun: "cause", words: causes}, "cause", "release only deletions of this `cause`")
	set.DurationVar(&f.lasts, "for", 10*time.Minute, "how long such deletions begin without a limit")
	set.BoolVar(&f.dryRun, "dry-run", false, "show which deletions wait, and release nothing")
	f.which.add(set)
	c.PreRunE = f.which.usage(func() error {
		if f.lasts < time.Minute {
			return fmt.Errorf("--for is %s, want at least 1m", f.lasts)
		}
		return nil
	})
	completeChoices(c)
	return c
}

// release shows which deletions wait, and releases them.
func (p *program) release(ctx context.Context, f *releaseFlags, resource string, out io.Writer) error {
	h, err := p.homeOf(ctx, &f.which)
	if err != nil {
		return err
	}
	contents, err := h.limits(ctx)
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(out, "no deletion of operator %s waits (there is no ConfigMap %s/%s)\n", h.op.Name, h.namespace, h.op.LimitsConfigMap())
		return nil
	}
	if err != nil {
		return err
	}
	one := limits.Release{Cause: limits.Cause(f.cause), Until: h.clock.now().Add(f.lasts).UTC().Truncate(time.Second), By: whoAmI(ctx, h.client)}
	chosen := f.chosen(contents, resource, &one)
	if len(chosen) == 0 {
		fmt.Fprintf(out, "no waiting deletion of operator %s matches (those of the last minute may not be recorded yet)\n", h.op.Name)
		return nil
	}
	for _, g := range chosen {
		fmt.Fprintf(out, "%s: %s\n", g.Resource, g.Counted())
	}
	if f.dryRun {
		return nil
	}
	all := slices.DeleteFunc(contents.Releases, func(r limits.Release) bool { return r.Until.Before(h.clock.now()) })
	text, err := json.Marshal(append(all, one))
	if err != nil {
		return err
	}
	if err := h.applyConfigMap(ctx, h.op.LimitsConfigMap(), releaser, map[string]string{limits.ReleasedKey: string(text)}); err != nil {
		return fmt.Errorf("releasing deletions of operator %s: %w", h.op.Name, err)
	}
	fmt.Fprintf(out, "released until %s: operator %s reads it within a minute\n", one.Until.Format(time.RFC3339), h.op.Name)
	return nil
}

// limits returns the contents of the ConfigMap of the operator's limits.
func (h *home) limits(ctx context.Context) (limits.Contents, error) {
	name := h.op.LimitsConfigMap()
	found := &corev1.ConfigMap{}
	if err := h.client.Core().Get().Namespace(h.namespace).Resource("configmaps").Name(name).Do(ctx).Into(found); err != nil {
		return limits.Contents{}, fmt.Errorf("reading ConfigMap %s/%s: %w", h.namespace, name, err)
	}
	out, err := limits.ParseContents(found.Data)
	if err != nil {
		return out, fmt.Errorf("reading ConfigMap %s/%s: %w (remove the key if somebody has edited it)", h.namespace, name, err)
	}
	return out, nil
}

// chosen returns the waiting deletions that a release includes, and sets the resource of the release to its full name. The
// argument resource may be that name, its beginning, or the plural alone.
func (f *releaseFlags) chosen(contents limits.Contents, resource string, one *limits.Release) (out []limits.Group) {
	for _, record := range contents.Records {
		for _, g := range record.Waiting {
			plural, _, _ := strings.Cut(g.Resource, ".")
			named := resource == "" || resource == g.Resource || resource == plural || strings.HasPrefix(g.Resource, resource+".")
			if !named || one.Cause != "" && one.Cause != g.Cause {
				continue
			}
			if resource != "" {
				one.Resource = g.Resource
			}
			out = append(out, g)
		}
	}
	slices.SortFunc(out, limits.Group.Compare)
	return out
}
