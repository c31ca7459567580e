// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// bundleFlags are the flags of bundle.
type bundleFlags struct {
	config           []string
	namespace, image string
	replicas         int
	patches          []string
	dir              string
	argocd           bool
	// createNamespace and podMonitor add objects, noPolicy leaves one out.
	createNamespace, podMonitor, noPolicy bool
	secure                                bool
	// admission adds the policies and webhook configurations.
	admission bool
	// confine is the rule that confines the operator's account; empty for none. egress are the destinations beside the API server.
	confine string
	egress  []string
}

func (p *program) bundleCommand() *cobra.Command {
	f := &bundleFlags{}
	c := &cobra.Command{
		Use:   "bundle --config FILE|DIR",
		Short: "Print all that it takes to deploy an operator",
		Long: `Print the objects that deploy an operator: its CRDs, a service account with exactly
the rights that it needs, the configuration in a ConfigMap, a Deployment that the Pod
Security Standard "restricted" admits, a PodDisruptionBudget, a Service for metrics and
a NetworkPolicy. All but the CRDs are named handwerk-OPERATOR, outside of its namespace
with :NAMESPACE behind it, and carry the label app.kubernetes.io/instance=OPERATOR.

The ConfigMap has a hash in its name, so a changed configuration rolls the Deployment,
and kubectl rollout undo brings the configuration of before back. With -o, the objects
are files with a kustomization.`,
		Example: `  operator bundle --config webapp --create-namespace | kubectl apply --server-side -f -
  operator bundle --config webapp --image registry.example.com/handwerk:v1 -o deploy/webapp
  kubectl apply --server-side -k deploy/webapp`,
		Args:    noArguments,
		PreRunE: p.usage(&f.config, f.check),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.bundle(f, c.OutOrStdout())
		},
	}
	f.add(c.Flags(), p.defaultImage())
	return c
}

func (f *bundleFlags) add(set *pflag.FlagSet, image string) {
	addConfig(set, &f.config)
	set.StringVar(&f.namespace, "namespace", defaultNamespace, "deploy into this `namespace`")
	set.BoolVar(&f.createNamespace, "create-namespace", false, "print the namespace, too")
	set.StringVar(&f.image, "image", image, "run this `image`")
	set.IntVar(&f.replicas, "replicas", 2, "run this `number` of Pods; one leads")
	set.BoolVar(&f.secure, ops.SecureFlag, true,
		"serve metrics by TLS to who may get them, and print the rights for it; without it,\nmetrics stay on loopback")
	set.BoolVar(&f.podMonitor, "pod-monitor", false, "print a PodMonitor for the Prometheus operator, with an account of its own")
	set.BoolVar(&f.noPolicy, "no-network-policy", false, "leave the NetworkPolicy out")
	set.StringArrayVar(&f.egress, "egress", nil,
		"let the operator connect to this `[CIDR:]PORT` by TCP, beside the API server and DNS;\nrepeatable")
	set.BoolVar(&f.admission, "admission", false,
		"print the policies and webhook configurations, too, which the operator then neither keeps\nnor may write; webhooks get their certificate from cert-manager")
	set.StringVar(&f.confine, "confine", "",
		"print a ValidatingAdmissionPolicy that rejects writes of the operator's account outside\nof some namespaces; the `RULE` is 'namespace name matches GLOB[,GLOB]'. Events and the\noperator's own custom resources are written everywhere")
	set.StringArrayVar(&f.patches, "patch", nil,
		"change the objects by the patches in this `FILE`, documents as kustomize takes them: a\nkind, a name and what is to be different; repeatable")
	set.StringVarP(&f.dir, "output", "o", "", "write files with a kustomization into this `DIR`")
	set.BoolVar(&f.argocd, "argocd", false, "with -o, also write a patch of Argo CD's ConfigMap with health checks of the operator's\nkinds")
	set.SortFlags = false
}

// check reports invalid values of flags.
func (f *bundleFlags) check() error {
	if f.confine != "" {
		if _, err := parseConfine(f.confine); err != nil {
			return err
		}
	}
	for _, text := range f.egress {
		if _, err := parseEgress(text); err != nil {
			return err
		}
	}
	switch {
	case len(validation.IsDNS1123Label(f.namespace)) > 0:
		return fmt.Errorf("invalid value %q for --namespace: want the name of a namespace", f.namespace)
	case f.replicas < 0:
		return errors.New("--replicas must not be negative")
	case f.image == "" || strings.ContainsAny(f.image, " \t\n"):
		return fmt.Errorf("invalid value %q for --image", f.image)
	case f.argocd && f.dir == "":
		return errors.New("--argocd needs -o DIR: it writes a patch of Argo CD's ConfigMap, which is not applied with the rest")
	case f.podMonitor && !f.secure:
		return fmt.Errorf("--pod-monitor needs --%s: metrics on loopback cannot be scraped", ops.SecureFlag)
	default:
		return nil
	}
}

// bundle prints the objects, or writes them to a folder.
func (p *program) bundle(f *bundleFlags, out io.Writer) error {
	op, err := p.operator(f.config, func(*dsl.Operator) {})
	if err != nil {
		return err
	}
	b, err := newBundle(f, op)
	if err != nil {
		return err
	}
	files, err := b.files()
	if err != nil {
		return err
	}
	if files, err = patched(files, f.patches); err != nil {
		return err
	}
	if f.dir == "" {
		for i, file := range files {
			if i > 0 {
				fmt.Fprintln(out, "---")
			}
			if _, err := io.WriteString(out, file.text); err != nil {
				return err
			}
		}
		p.noteBundle(b)
		return nil
	}
	files = append(files, kustomization(files))
	if f.argocd {
		health, err := argoPatch(op)
		if err != nil {
			return err
		}
		files = append(files, health)
	}
	if err := f.sparesInput(files); err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	p.noteDropped(f.dir, files)
	for _, file := range files {
		name := filepath.Join(f.dir, file.name)
		if err := os.WriteFile(name, []byte(file.text), 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", name)
	}
	p.noteBundle(b)
	fmt.Fprintf(out, "\nnext:\n  kubectl apply --server-side -k %s\n", filepath.ToSlash(f.dir))
	return nil
}

// noteDropped names the files that an earlier bundle in the folder lists and this one does not, as after a forgotten
// --create-namespace: pruning deletes their objects.
func (p *program) noteDropped(dir string, files []file) {
	var before struct{ Resources []string }
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil || yaml.Unmarshal(text, &before) != nil {
		return // there is no earlier bundle
	}
	for _, name := range before.Resources {
		if !slices.ContainsFunc(files, func(f file) bool { return f.name == name }) {
			fmt.Fprintf(p.Err, "note: %s was part of the last bundle, and is not of this one: whoever prunes deletes its objects\n", name)
		}
	}
}

// noteBundle says what somebody should know before applying a bundle.
func (p *program) noteBundle(b *bundle) {
	if b.flags.image == localImage {
		fmt.Fprintf(p.Err, "note: without --image, the Deployment runs %s, which is in no registry: load it into the cluster, or push it and name it (docs/deploy.md)\n", localImage)
	}
	if handled := builtInHandled(b.op); b.Confinement != nil && len(handled) > 0 {
		fmt.Fprintf(p.Err, "note: --confine also holds for the %s that the operator handles: it cannot write to those in other namespaces\n", strings.Join(handled, ", "))
	}
	if risks := unusual(rbac.Risks(b.rights())); len(risks) > 0 {
		fmt.Fprint(p.Err, "note: ")
		writeRisks(p.Err, b.op, risks, mostRisks)
	}
}

// sparesInput returns an error if a file of the bundle would overwrite one of its inputs.
func (f *bundleFlags) sparesInput(files []file) error {
	inputs, faults := source.Files(f.config)
	if len(faults) > 0 {
		return faults
	}
	for _, input := range slices.Concat(inputs, source.Parts(inputs), f.patches) {
		before, err := os.Stat(input)
		if err != nil {
			return err
		}
		for _, file := range files {
			name := filepath.Join(f.dir, file.name)
			if there, err := os.Stat(name); err == nil && os.SameFile(before, there) {
				return fmt.Errorf("writing %s: the bundle is made from this file; write into another directory", name)
			}
		}
	}
	return nil
}
