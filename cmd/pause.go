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
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/handwerk-dev/handwerk/cmd/door"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
)

// whichFlags say which operator a command is about that writes to the cluster what the operator heeds.
type whichFlags struct {
	config              []string
	operator, namespace string
	kube                kubeFlags
}

func (f *whichFlags) add(set *pflag.FlagSet) {
	f.addNames(set)
	set.StringVar(&f.namespace, door.NamespaceFlag, "", "the `namespace` that it runs in (default that of its Lease)")
}

// addNames is add for a command that needs no more than the operator's names.
func (f *whichFlags) addNames(set *pflag.FlagSet) {
	set.StringSliceVar(&f.config, "config", nil, "the operator of this `FILE|DIR`")
	set.StringVar(&f.operator, "operator", "", "the operator of this `name`, or name.domain where it has a domain of its own")
	f.kube.add(set)
	set.SortFlags = false
}

// usage is a PreRunE that refuses wrong flags: no operator is named, or the faults that the checks find.
func (f *whichFlags) usage(checks ...func() error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		for _, check := range append(checks, f.check) {
			if err := check(); err != nil {
				return &usageError{command: c.CommandPath(), err: err}
			}
		}
		return nil
	}
}

func (f *whichFlags) check() error {
	if len(f.config) == 0 && f.operator == "" {
		return errors.New("--config or --operator is required")
	}
	return nil
}

// operatorOf returns the operator that the flags name; only its names are known without --config.
func (p *program) operatorOf(f *whichFlags) (*dsl.Operator, error) {
	if len(f.config) > 0 {
		return p.operator(f.config, func(*dsl.Operator) {})
	}
	name, domain, _ := strings.Cut(f.operator, ".")
	op := dsl.New(name)
	op.Domain = domain
	return op, nil
}

// home is the namespace where an operator's processes read the ConfigMaps that people write for them.
type home struct {
	op        *dsl.Operator
	client    *kube.Clients
	namespace string
	// clock is that of the API server.
	clock *serverClock
}

// homeOf returns the home of the operator that the flags name.
func (p *program) homeOf(ctx context.Context, f *whichFlags) (*home, error) {
	op, err := p.operatorOf(f)
	if err != nil {
		return nil, err
	}
	config, current, err := p.access(ctx, &f.kube)
	if err != nil {
		return nil, err
	}
	config = transport.WithDeadline(config)
	config.UserAgent = userAgent(op.Name)
	out := &home{op: op, namespace: cmp.Or(f.namespace, op.Settings.LeaderElection.Namespace), clock: &serverClock{}}
	config.Wrap(out.clock.read)
	if out.client, err = kube.New(config); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if out.namespace == "" {
		to := door.Target{Operator: op.Name}
		if len(f.config) > 0 {
			to.Lock = op.LeaderLock()
		}
		out.namespace, err = door.Home(ctx, config, current, to)
	}
	return out, err
}

// pauseFlags are the flags of pause.
type pauseFlags struct {
	which whichFlags
	// lasts is nil for a pause without an end.
	lasts     *time.Duration
	message   string
	deletions string
}

func (p *program) pauseCommand() *cobra.Command {
	f := &pauseFlags{deletions: pause.Hold}
	c := &cobra.Command{
		Use:   "pause --config FILE|DIR -m TEXT",
		Short: "Have an operator run no handlers for a while",
		Long: `Have an operator run no handlers, until operator resume or for a time. All its processes
obey within a second, and so do those that start meanwhile: no handler, timer, daemon,
time-out of a machine or repair of a child runs, and the operator writes to no object. A
handler that runs already goes to its end. What comes up meanwhile is handled afterwards.
A process that starts installs CRDs and runs startups nevertheless; indexes, cleanups and
probes go on, too.

Objects that are being deleted wait, too; with --deletions=proceed they are handled.

It writes the ConfigMap NAME-paused in the operator's namespace, for which you need the
rights to create and patch ConfigMaps there, and to list Leases, or to know the namespace.
To pause one object, annotate it.`,
		Example: `  operator pause --config webapp --for 2h -m "moving the database, INC-12"
  operator pause --operator webapp --deletions proceed -m "looking at loops"
  kubectl annotate website home 'webapp.handwerk.dev/paused=INC-12'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.pause(c.Context(), f, c.OutOrStdout())
		},
	}
	set := c.Flags()
	set.StringVarP(&f.message, "message", "m", "", "the reason, as `text` for others; required")
	lasts := set.Duration("for", 0, "end by itself after this time, as in 2h (default until operator resume)")
	set.Var(&choice{value: &f.deletions, noun: "choice", words: []string{pause.Hold, pause.Proceed}}, "deletions",
		"hold objects that are being deleted, or let their deletion proceed")
	f.which.add(set)
	c.PreRunE = f.which.usage(func() error {
		if set.Changed("for") {
			f.lasts = lasts
		}
		return f.check()
	})
	completeChoices(c)
	return c
}

func (f *pauseFlags) check() error {
	switch {
	case strings.TrimSpace(f.message) == "":
		return errors.New("--message is required: others want to know why")
	case f.lasts != nil && *f.lasts < time.Second:
		return fmt.Errorf("--for is %s, want a second at least", *f.lasts)
	}
	return nil
}

// pause writes the ConfigMap.
func (p *program) pause(ctx context.Context, f *pauseFlags, out io.Writer) error {
	h, err := p.homeOf(ctx, &f.which)
	if err != nil {
		return err
	}
	who := whoAmI(ctx, h.client)
	now := pause.Pause{By: pause.Operator, Reason: f.message, Who: who, Since: h.clock.now(), Deletions: f.deletions == pause.Proceed}
	if f.lasts != nil {
		now.Until = now.Since.Add(*f.lasts)
	}
	if err = h.applyConfigMap(ctx, h.op.PauseConfigMap(), h.op.Name, now.Data()); err != nil {
		hint := ""
		if apierrors.IsNotFound(err) {
			hint = " (give the one that the operator runs in with --operator-namespace)"
		}
		return fmt.Errorf("pausing operator %s: %w%s", h.op.Name, err, hint)
	}
	until := "until operator resume"
	if f.lasts != nil {
		until = "until " + now.Until.Format(time.RFC3339)
	}
	fmt.Fprintf(out, "operator %s is paused %s (ConfigMap %s/%s)\n", h.op.Name, until, h.namespace, h.op.PauseConfigMap())
	return nil
}

// applyConfigMap applies the data of a ConfigMap as a field manager.
func (h *home) applyConfigMap(ctx context.Context, name, manager string, data map[string]string) error {
	body, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name},
		Data:       data,
	})
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}.ToPatchOptions()
	return h.client.Core().Patch(types.ApplyPatchType).Namespace(h.namespace).Resource("configmaps").Name(name).
		VersionedParams(&options, scheme.ParameterCodec).Body(body).Do(ctx).Error()
}

// whoAmI returns the name of the user, empty where the API server does not say it.
func whoAmI(ctx context.Context, client kube.Interface) string {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

func (p *program) resumeCommand() *cobra.Command {
	f := &whichFlags{}
	c := &cobra.Command{
		Use:   "resume --config FILE|DIR",
		Short: "End what operator pause began",
		Long: `End what operator pause began: each object is looked at, and what came up meanwhile is
handled. Annotations of objects and namespaces stay.

It deletes the ConfigMap NAME-paused in the operator's namespace, for which you need the
right, and that to list Leases, or to know the namespace. With --config, a pause under an
earlier name of the operator ends, too.`,
		Example: `  operator resume --config webapp`,
		Args:    noArguments,
		PreRunE: f.usage(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.resume(c.Context(), f, c.OutOrStdout())
		},
	}
	f.add(c.Flags())
	return c
}

// resume deletes the ConfigMap, also that of an earlier name.
func (p *program) resume(ctx context.Context, f *whichFlags, out io.Writer) error {
	h, err := p.homeOf(ctx, f)
	if err != nil {
		return err
	}
	goes := false
	for _, name := range h.op.PauseConfigMaps() {
		err := h.client.Core().Delete().Namespace(h.namespace).Resource("configmaps").Name(name).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("resuming operator %s: %w", h.op.Name, err)
		}
		goes = goes || err == nil
	}
	if !goes {
		fmt.Fprintf(out, "operator %s is not paused (there is no ConfigMap %s/%s)\n", h.op.Name, h.namespace, h.op.PauseConfigMap())
		return nil
	}
	fmt.Fprintf(out, "operator %s goes on\n", h.op.Name)
	return nil
}
