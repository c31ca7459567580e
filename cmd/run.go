// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// machine is an operator that is ready to run.
type machine interface {
	// Run blocks until ctx has ended and everything has stopped.
	Run(ctx context.Context) error
	ops.HealthChecks
	ops.Debug
}

// closing is how long requests to the HTTP server may take after the operator has stopped.
const closing = 3 * time.Second

const runExample = `  # run an operator against the cluster of your kubeconfig
  operator run --config operator.yaml

  # two namespaces only, with lines for people
  operator run --config operator.yaml -n team-a -n team-b --zap-devel

  # as a Deployment's pods do
  operator run --config /etc/operator --leader-elect`

func (p *program) runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run --config FILE|DIR",
		Short: "Run an operator until a signal stops it",
		Long: `Run an operator until SIGINT or SIGTERM. Then no new work is begun, handlers may
finish within the grace period, and the rest is put away; a second signal exits
at once.`,
		Example: runExample,
		Args:    runArguments,
		PreRunE: p.usage(&f.config, f.check),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.run(c.Context(), f)
		},
	}
	f.add(c.Flags())
	c.Flags().SortFlags = false
	completeChoices(c)
	return c
}

// run makes the operator and runs it.
func (p *program) run(ctx context.Context, f *runFlags) error {
	op, err := p.operator(f.config, f.override)
	if err != nil {
		return err
	}
	if err := p.completeLeader(op); err != nil {
		return err
	}
	f.logging.terminal = p.shows
	log, verbosity := f.logging.logger(p.Err)
	if p.adopt != nil {
		p.adopt(log, verbosity)
		tuneMemory()
	}
	settings, spans, err := p.settings(ctx, f, op, log)
	if err != nil {
		return err
	}
	m, err := p.engine(op, settings)
	if err != nil {
		return fmt.Errorf("making operator %s: %w", op.Name, err)
	}
	secure, err := f.protection(settings.Config)
	if err != nil {
		return err
	}
	server := ops.NewServer(ops.Settings{
		HealthAddress: p.healthAddress(f), MetricsAddress: f.metricsAddress(), PprofAddress: f.pprof, Secure: secure,
		Debug:  ops.DebugSettings{Address: f.debug, Elsewhere: !f.set.Changed(ops.DebugFlag), Debug: m, Operator: op.Name, Process: settings.Identity},
		Health: m, Metrics: settings.Metrics, Log: log.WithName("http"),
	})
	if err := server.Listen(ctx); err != nil {
		return err
	}
	log.Info("starting", "operator", op.Name, "version", settings.Version, "server", settings.Config.Host,
		"health", server.HealthAddress(), "metrics", server.MetricsAddress(), "debug", server.DebugAddress(), "pprof", server.PprofAddress())
	for _, document := range op.Skipped {
		log.Info("document is skipped: it is no operator's", "document", document)
	}
	work := m.Run
	if f.installs() {
		set := crd.Settings{Log: log, TakeOver: f.installCRDs == installAll, AllowBreaking: f.allowBreaking}
		work = p.installing(op, settings.Config, set, m.Run)
	}
	if err := serveWhile(klog.NewContext(ctx, log), server.Serve, server.Shutdown, spans.around(work)); err != nil {
		return fmt.Errorf("running operator %s: %w", op.Name, err)
	}
	return nil
}

// settings returns the settings of the engine, and the exporter of its spans. The exporter is nil if nothing is traced.
func (p *program) settings(ctx context.Context, f *runFlags, op *dsl.Operator, log logr.Logger) (s engine.Settings, spans *exporter, err error) {
	if err := p.reached(f, op); err != nil {
		return s, nil, err
	}
	config, namespace, err := p.access(ctx, &f.kube)
	if err != nil {
		return s, nil, err
	}
	config.UserAgent = userAgent(op.Name)
	metrics, err := p.allMetrics()
	if err != nil {
		return s, nil, err
	}
	pod := lookup(p.Env, "POD_NAME")
	s = engine.Settings{
		Config: config, Log: log, Metrics: metrics, PodName: pod, Namespace: cmp.Or(p.ownNamespace(), namespace), Identity: identity(pod),
		Version: selfVersion().Version, Webhooks: f.webhooks,
	}
	spans, err = newExporter(p.Env, op.Name, log.WithName("trace"))
	spans.follow(&s)
	return s, spans, err
}

// reached reports webhooks and conversions that no API server could reach: outside of a cluster no Service leads to this process.
func (p *program) reached(f *runFlags, op *dsl.Operator) error {
	if !op.NeedsWebhooks() || lookup(p.Env, "KUBERNETES_SERVICE_HOST") != "" || cmp.Or(f.webhooks.Address, f.webhooks.URL, f.webhooks.Service, f.webhooks.CertDir) != "" {
		return nil
	}
	var names []string
	for h, r := range policy.Hooked(op) {
		names = append(names, r.Name.Resource+"/"+h.ID)
	}
	for _, r := range op.Resources() {
		if r.Converts() {
			names = append(names, "the conversion of "+r.Name.Resource)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("serving webhooks: %s cannot be reached from the API server, as this is no Pod: add --webhook-address 127.0.0.1:9443 for an API server on this machine, or --webhook-url", strings.Join(names, ", "))
}

// allMetrics returns the engine's metrics with the program's own.
func (p *program) allMetrics() (*ops.Metrics, error) {
	metrics := ops.NewMetrics()
	for _, own := range p.metrics {
		if err := metrics.Registry().Register(own); err != nil {
			return nil, fmt.Errorf("registering a metric of the program: %w", err)
		}
	}
	return metrics, nil
}

// healthAddress returns the address of the probes. The kubelet reaches them in a Pod; elsewhere they are for this machine.
func (p *program) healthAddress(f *runFlags) string {
	switch {
	case f.set.Changed(ops.HealthFlag):
		return f.health
	case lookup(p.Env, "KUBERNETES_SERVICE_HOST") != "":
		return podHealth
	}
	return localHealth
}

// The default addresses of the probes.
const (
	podHealth   = ":8081"
	localHealth = "127.0.0.1:8081"
)

// protection returns how /metrics is protected; nil if it is not. Its requests use separate connections: a standby
// serves metrics, too, and writes of handlers must not wait for them.
func (f *runFlags) protection(config *rest.Config) (*ops.Secure, error) {
	if !f.secure {
		return nil, nil
	}
	tokens, err := authentication.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("protecting metrics: %w", err)
	}
	access, err := authorization.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("protecting metrics: %w", err)
	}
	return &ops.Secure{Tokens: tokens.TokenReviews(), Access: access.SubjectAccessReviews(), CertFile: f.certFile, KeyFile: f.keyFile}, nil
}

// installing calls run after the operator's CRDs are installed. A signal during the installation is not an error.
func (p *program) installing(op *dsl.Operator, config *rest.Config, set crd.Settings, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := p.install(ctx, op, config, set); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return run(ctx)
	}
}

// serveWhile serves while run runs, and a little longer: the server stops last, so that the shutdown can be
// observed. When the server fails, run is stopped.
func serveWhile(ctx context.Context, serve func() error, shutdown, run func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var served error
	var wg sync.WaitGroup
	wg.Go(func() {
		if served = serve(); served != nil {
			stop()
		}
	})
	err := run(running)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if cut := shutdown(ending); cut != nil {
		klog.FromContext(ctx).Info("requests were cut off", "reason", cut.Error())
	}
	wg.Wait()
	switch {
	case served == nil:
		return err
	case err == nil:
		return served
	default:
		return fmt.Errorf("%w; %w", served, err)
	}
}

// identity returns the identity of this process in an election. Its suffix is random, so that a restarted pod
// differs from its predecessor.
func identity(pod string) string {
	if pod == "" {
		// Without a host name, the random suffix is enough.
		pod, _ = os.Hostname()
	}
	return pod + "_" + string(uuid.NewUUID())
}

// userAgent returns the user agent of the operator's requests, for the API server's audit log.
func userAgent(operator string) string {
	return fmt.Sprintf("%s/%s (%s/%s) handwerk", operator, selfVersion().Version, runtime.GOOS, runtime.GOARCH)
}
