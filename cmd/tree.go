// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd/tree"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

func (p *program) treeCommand() *cobra.Command {
	f, namespace := &askFlags{}, ""
	c := &cobra.Command{
		Use:   "tree RESOURCE/NAME",
		Short: "Show the children of an object, and their children",
		Long: `Show the children of an object, and their children: those that refer to their owner, and
those that operators have recorded on it, also in other namespaces. Objects that its
handlers patch are shown, too. All operators of Handwerk count, and none needs to run.
Each object has its readiness and the reason.

It lists the metadata of all kinds in the object's namespace with your own rights, and
says at the end what it could not read. Secrets are read as other children are, and
nothing of them is shown.`,
		Example: `  operator tree website/home
  operator tree website/home -n shop -o yaml`,
		Args: oneObject,
		RunE: func(c *cobra.Command, args []string) error {
			return p.tree(c.Context(), f, namespace, args[0], c.OutOrStdout())
		},
	}
	addObjectNamespace(c.Flags(), &namespace)
	f.kube.add(c.Flags())
	f.addFormat(c.Flags())
	completeChoices(c)
	return c
}

// tree finds the tree below an object, and writes it.
func (p *program) tree(ctx context.Context, f *askFlags, namespace, object string, out io.Writer) error {
	config, own, err := p.access(ctx, &f.kube)
	if err != nil {
		return err
	}
	config.UserAgent = userAgent("handwerk-cli")
	config.QPS = -1                           // API Priority and Fairness limits requests
	config.WarningHandler = rest.NoWarnings{} // all kinds are listed, so each deprecated one would have a line
	resource, name, _ := strings.Cut(object, "/")
	found, err := treeOf(ctx, config, resource, cmp.Or(namespace, own, metav1.NamespaceDefault), name)
	if err != nil {
		return fmt.Errorf("finding the tree of %s: %w", object, err)
	}
	page := out
	return f.write(out, found, func() error {
		var out bytes.Buffer
		rows := []row{{strings.Fields("OBJECT READY REASON AGE BY"), bold}}
		table(&out, p.colors(), treeRows(rows, found.Root, "", ""))
		for i, what := range found.Unread {
			if i == 0 {
				fmt.Fprintln(&out, "\nNot read, so children may be missing:")
			}
			fmt.Fprintln(&out, "  "+plain.Escaped(what, ""))
		}
		return p.people(page, &out)
	})
}

// treeOf finds the tree of an object that a person names as for kubectl.
func treeOf(ctx context.Context, config *rest.Config, resource, namespace, name string) (*tree.Tree, error) {
	found, gvr, namespace, err := discoverResource(config, resource, namespace)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metas, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return tree.Of(ctx, tree.Clients{Discovery: found, Mapper: found.mapper, Dynamic: objects, Metadata: metas}, gvr, namespace, name)
}

// treeRows adds the rows of a node and of those below it. First begins the row of the node, and rest those below.
func treeRows(rows []row, n *tree.Node, first, rest string) []row {
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + n.Name
	}
	ready, color := "?", yellow
	if n.Ready != nil && *n.Ready {
		ready, color = "True", noColor
	} else if n.Ready != nil {
		ready, color = "False", red
	}
	age := "-"
	if n.Created != nil {
		age = duration.HumanDuration(time.Since(*n.Created))
	}
	by := strings.Join(n.Ties, ", ")
	if n.Again {
		by += "; its children are shown elsewhere"
	}
	rows = append(rows, row{[]string{first + n.Kind + " " + name, ready, n.Reason, age, by}, color})
	for i, below := range n.Children {
		if i == len(n.Children)-1 {
			rows = treeRows(rows, below, rest+"└─ ", rest+"   ")
		} else {
			rows = treeRows(rows, below, rest+"├─ ", rest+"│  ")
		}
	}
	return rows
}
