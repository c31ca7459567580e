// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/migrate"
)

// migrateFlags are the flags of migrate.
type migrateFlags struct {
	kube   kubeFlags
	page   int64
	dryRun bool
}

func (p *program) migrateCommand() *cobra.Command {
	f := &migrateFlags{}
	c := &cobra.Command{
		Use:   "migrate RESOURCE",
		Short: "Rewrite stored objects in the version that their CRD stores now",
		Long: `Rewrite the stored objects of a custom resource after a change of its stored version.
Until then they keep their old form, and the old version cannot leave the CRD. It writes
each object as it was read, which changes nothing else, page by page. Then it takes the
old versions off status.storedVersions of the CRD. It may run again at any time.

The resource is named as its CRD, as in foos.example.com. If objects are converted, the
operator must run. You need the rights to get the CRD and to patch its status, and to
list, get and update the objects.`,
		Example: `  operator migrate foos.example.com --dry-run
  operator migrate foos.example.com`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !strings.Contains(args[0], ".") {
				return errors.New("want one resource by the name of its CRD, as in foos.example.com")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return p.migrate(c.Context(), f, args[0], c.OutOrStdout())
		},
	}
	f.kube.add(c.Flags())
	c.Flags().Int64Var(&f.page, "page", migrate.DefaultPage, "list so many objects at once; a page is a line of the progress")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say in which versions objects may be stored, and write nothing")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if f.page < 1 {
			return &usageError{command: c.CommandPath(), err: fmt.Errorf("--page is %d, want at least 1", f.page)}
		}
		return nil
	}
	completeChoices(c)
	return c
}

// migrate rewrites the objects of a resource.
func (p *program) migrate(ctx context.Context, f *migrateFlags, resource string, out io.Writer) error {
	config, _, err := p.access(ctx, &f.kube)
	if err != nil {
		return err
	}
	config.UserAgent = userAgent("operator-migrate")
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if name, err := dsl.ParseResourceName(resource); err == nil && name.Version != "" {
		resource = name.Resource + "." + name.Group
	}
	m, err := migrate.New(ctx, client, resource, f.page)
	if err != nil {
		return fmt.Errorf("migrating %s: %w", resource, err)
	}
	if len(m.Old()) == 0 {
		fmt.Fprintf(out, "%s: all objects are stored as %s\n", resource, m.Storage())
		return nil
	}
	fmt.Fprintf(out, "%s: objects are stored as %s, and some may still be as %s\n", resource, m.Storage(), strings.Join(m.Old(), ", "))
	if f.dryRun {
		return nil
	}
	for done, err := range m.Pages(ctx) {
		if err != nil {
			return fmt.Errorf("migrating %s: %w", resource, err)
		}
		fmt.Fprintln(out, migrated(done))
	}
	for _, failed := range m.Done().Failed {
		fmt.Fprintln(p.Err, failed)
	}
	if err := m.Finish(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: all objects are stored as %s; the CRD may lose %s\n", resource, m.Storage(), strings.Join(m.Old(), ", "))
	return nil
}

// migrated is the progress in a line.
func migrated(done migrate.Progress) string {
	out := fmt.Sprintf("%d written", done.Written)
	if n := len(done.Failed); n > 0 {
		out += fmt.Sprintf(", %d failed", n)
	}
	switch {
	case done.Remaining > 0:
		out += fmt.Sprintf(", about %d to go", done.Remaining)
	case done.Remaining < 0:
		out += ", more to go"
	}
	return out
}
