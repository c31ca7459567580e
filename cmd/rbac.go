// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// defaultNamespace is the namespace of operator bundle.
const defaultNamespace = "handwerk-system"

// objectName returns the name of the objects that deploy an operator, including its service account.
func objectName(operator string) string { return "handwerk-" + operator }

// outside returns the name of an object outside of the operator's namespace. It differs between namespaces, because
// the operator may be deployed in several.
func outside(name, namespace string) string { return name + ":" + namespace }

// rbacFlags are the flags of rbac. Flags that run also has, such as the namespaces, are run's own.
type rbacFlags struct {
	run     runFlags
	account string
	output  string
	cluster bool
	check   bool
	minimal bool
	summary bool
}

func (f *rbacFlags) checkAccount() error {
	_, err := parseAccount(f.account, "")
	return err
}

func (p *program) rbacCommand() *cobra.Command {
	f := &rbacFlags{output: "yaml"}
	c := &cobra.Command{
		Use:   "rbac --config FILE|DIR",
		Short: "Print the roles that an operator needs, or check its account",
		Long: `Print the Roles and ClusterRoles that an operator needs, bound to its service
account, and who needs what of it. Rights are for single namespaces where the
operator works in some, and for the whole cluster otherwise. Give it the flags
that run gets: --namespace, --leader-elect, --install-crds, --metrics-secure. The
namespace and the account itself are not printed; operator bundle prints all of it.

With -o helm, they are values for the chart in deploy/chart, with the rights of the
hook that runs operator cleanup. They are for the lease and --metrics-secure unless
flags say otherwise. Account and namespace are those of the release.

With --check, the cluster is asked instead which of these rights are missing: for
the account of your kubeconfig, or for the one of --service-account. The exit code
is 1 when one is missing that the operator cannot work without.

With --summary, it prints the rights that Kubernetes calls risky, and the handlers that
ask for them: reading Secrets, writing roles, deleting Namespaces, and so on.

What Go functions need, only their authors know; see needs in docs/language.md.`,
		Example: `  operator rbac --config operator.yaml | kubectl apply -f -
  operator rbac --config operator.yaml -n team-a --service-account team-a/operator
  operator rbac --config operator.yaml -o helm > rights.yaml
  operator rbac --config operator.yaml --summary
  operator rbac --config operator.yaml --check --service-account team-a/operator`,
		Args:    noArguments,
		PreRunE: p.usage(&f.run.config, f.checkAccount, f.run.checkNamespaces, f.checkSummary, f.checkHelm),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.rbac(c.Context(), f, c.OutOrStdout())
		},
	}
	f.add(c.Flags())
	completeChoices(c)
	return c
}

func (f *rbacFlags) add(set *pflag.FlagSet) {
	f.run.set = set
	addConfig(set, &f.run.config)
	f.run.kube.add(set)
	f.run.addNamespaces(set)
	f.run.addLeader(set)
	f.run.addInstall(set)
	f.run.addSecure(set)
	f.run.addAdmission(set)
	set.StringVar(&f.account, "service-account", "",
		"the account of the operator's pod, as `NAMESPACE/NAME`\n(default that of operator bundle, "+objectName("OPERATOR")+" in "+defaultNamespace+")")
	set.BoolVar(&f.cluster, "cluster", false, "learn from a cluster which resources have namespaces, rather than guess")
	set.BoolVar(&f.minimal, "minimal", false, "leave out what the operator works without, in part")
	set.BoolVar(&f.summary, "summary", false, "print the dangerous things alone that the account can do, as reading Secrets")
	set.BoolVar(&f.check, "check", false, "ask a cluster which of the rights are missing, and print these")
	addChoice(set, &choice{value: &f.output, noun: "format", words: []string{"yaml", "json", helmValues}}, "output", "o", "how the roles are written")
}

// account is a service account.
type account struct{ namespace, name string }

// parseAccount reads an account; an empty text means the account of operator bundle.
func parseAccount(text, operator string) (account, error) {
	if text == "" {
		return account{defaultNamespace, objectName(operator)}, nil
	}
	namespace, name, found := strings.Cut(text, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return account{}, fmt.Errorf("--service-account: want NAMESPACE/NAME, found %q", text)
	}
	return account{namespace, name}, nil
}

// user returns the account's user name in the API server.
func (a account) user() string { return "system:serviceaccount:" + a.namespace + ":" + a.name }

// rbac prints the roles of an operator, or the rights that its account lacks.
func (p *program) rbac(ctx context.Context, f *rbacFlags, out io.Writer) error {
	op, err := p.operator(f.run.config, f.run.override)
	if err != nil {
		return err
	}
	who, err := parseAccount(f.account, op.Name)
	if err != nil {
		return err
	}
	if f.output == helmValues {
		f.asInChart(op)
		who.namespace = releaseNamespace
	}
	set := rbac.Settings{Namespace: who.namespace, InstallCRDs: f.run.installs(), SecureMetrics: f.run.secure, CRDs: crdsBeside(f.run.config)}
	var cluster *rest.Config
	if f.cluster || f.check {
		if cluster, _, err = p.access(ctx, &f.run.kube); err != nil {
			return err
		}
		cluster.UserAgent = userAgent(op.Name)
		if set.Lookup, err = p.lookup(ctx, op, cluster); err != nil {
			return fmt.Errorf("looking at the cluster: %w", err)
		}
	}
	rules := rbac.Of(op, set)
	if f.check {
		user := "" // the user of the kubeconfig
		if f.run.set.Changed("service-account") {
			user = who.user()
		}
		review, err := p.reviewer(cluster, user)
		if err != nil {
			return err
		}
		return p.checkRights(ctx, op, rules, review, f.output, out)
	}
	if f.minimal {
		rules = slices.DeleteFunc(rules, func(r rbac.Rule) bool { return r.Optional })
	}
	if f.summary {
		writeSummary(out, op, rules)
		return nil
	}
	roles := rbac.Roles(rules)
	switch f.output {
	case helmValues:
		return f.writeValues(out, op, roles, rbac.Roles(rbac.OfCleanup(op, set, objectName(op.Name))))
	case "json":
		return writeJSON(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": roleObjects(op, who, roles)})
	default:
		return writeRoles(out, f.head(op), op, who, roles)
	}
}

// head describes how the roles were made.
func (f *rbacFlags) head(op *dsl.Operator) string {
	var line strings.Builder
	line.WriteString("What operator " + op.Name + " needs. Made by: operator rbac")
	f.run.set.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed || slices.Contains([]string{"kubeconfig", "context"}, flag.Name) || flag.Name == "output" && f.output != helmValues {
			return
		}
		value := strings.Trim(flag.Value.String(), "[]")
		if flag.Value.Type() == "bool" && value == "true" {
			line.WriteString(" --" + flag.Name)
			return
		}
		line.WriteString(" --" + flag.Name + "=" + value)
	})
	for _, handler := range rbac.Undeclared(op) {
		line.WriteString("\n" + undeclared(handler))
	}
	return line.String()
}

// undeclared is the message for a handler whose rights are not declared.
func undeclared(handler string) string {
	return "Handler " + handler + " may need more, which only its author knows: say it with needs (dsl.Needs in Go)."
}

// lacking is the output of --check with -o json.
type lacking struct {
	Operator string    `json:"operator"`
	Rights   int       `json:"rights"`
	OK       bool      `json:"ok"`
	Missing  []missing `json:"missing"`
	// Undeclared are handlers whose rights are not known.
	Undeclared []string `json:"undeclared,omitempty"`
}

// missing is one right that the account lacks.
type missing struct {
	Verb        string   `json:"verb"`
	Group       string   `json:"group"`
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource,omitempty"`
	Name        string   `json:"name,omitempty"`
	Namespace   string   `json:"namespace,omitempty"`
	Optional    bool     `json:"optional,omitempty"`
	For         []string `json:"for"`
}

// checkRights prints the missing rights. If the operator needs one of them, it returns an error.
func (p *program) checkRights(ctx context.Context, op *dsl.Operator, rules []rbac.Rule, review rbac.Reviewer, output string, out io.Writer) error {
	gone, err := rbac.Check(ctx, review, rules)
	if err != nil {
		return fmt.Errorf("checking rights: %w", err)
	}
	v := lacking{Operator: op.Name, Rights: len(rules), OK: true, Missing: []missing{}, Undeclared: rbac.Undeclared(op)}
	for _, r := range gone {
		m := missing{
			Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
			Name: r.Name, Namespace: r.Namespace, Optional: r.Optional,
		}
		for _, reason := range r.Reasons {
			m.For = append(m.For, reason.String())
		}
		v.Missing, v.OK = append(v.Missing, m), v.OK && r.Optional
	}
	if output == "json" {
		if err := writeJSON(out, v); err != nil {
			return err
		}
		if !v.OK {
			return errPrinted
		}
		return nil
	}
	for _, handler := range v.Undeclared {
		fmt.Fprintf(p.Err, "warning: handler %s may need more, which only its author knows: say it with needs (dsl.Needs in Go)\n", handler)
	}
	return tellMissing(out, v, gone)
}

// tellMissing prints the missing rights for people.
func tellMissing(out io.Writer, v lacking, gone []rbac.Rule) error {
	needed := 0
	for _, r := range gone {
		word := "missing"
		if r.Optional {
			word = "missing (optional)"
		} else {
			needed++
		}
		fmt.Fprintf(out, "%s: %s\n", word, r)
		for _, reason := range r.Reasons {
			fmt.Fprintf(out, "  for %s\n", reason)
		}
	}
	if needed > 0 {
		return errors.New("of " + count(v.Rights, "right") + " that operator " + v.Operator + " needs, " + fmt.Sprint(needed) + " missing")
	}
	fmt.Fprintf(out, "operator %s: %s: ok\n", v.Operator, count(v.Rights, "right"))
	return nil
}
