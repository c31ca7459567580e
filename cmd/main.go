// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// Main runs the program's command line and exits. A main package needs nothing else:
//
//	func main() { cmd.Main(handlers.Standard()) }
//
// The registry has the actions and functions that configurations may name. Each extra function is called with the
// operator after its configuration was read, and may add resources and handlers in Go. With extra functions,
// --config is optional; without it they must also name the operator.
//
// The first SIGINT, SIGTERM or SIGHUP asks for an orderly stop; a second SIGINT or SIGTERM exits at once. If SIGHUP
// is ignored at the start, as by nohup, it stays ignored. Main also redirects the logs of client-go and the API
// machinery to the program's log. That is global to the process, as is the exit, so [Run] does not do it.
func Main(registry *actions.Registry, extra ...func(*dsl.Operator)) {
	Program{Registry: registry, Extra: extra}.Main()
}

// Program is a command line with additional settings, which few programs need; the others call [Main].
//
//	cmd.Program{Registry: handlers.Standard(), Login: vault.Login}.Main()
type Program struct {
	// Registry and Extra are as in [Main]. Registry is required.
	Registry *actions.Registry
	Extra    []func(*dsl.Operator)
	// Login returns the config for the API server, with credentials. It is called when a command first needs it. It
	// takes precedence over the pod's own access, $KUBECONFIG and ~/.kube/config, and --kubeconfig and --context
	// take precedence over it. If the API server answers 401, Login is called again, at most once in ten seconds, and the
	// request is sent with the new token or password. Other credentials must renew themselves: by BearerTokenFile,
	// ExecProvider or a certificate's file. The config is copied; its user agent is set. Optional.
	Login func(ctx context.Context) (*rest.Config, error)
	// Metrics are the program's own. The run command serves them at /metrics beside the engine's; it fails if two have one name.
	// Optional.
	Metrics []prometheus.Collector
	// Samples has operators that init --sample writes out, a folder each. Optional.
	Samples fs.FS
	// BuiltBy names the builder for operator version. Optional.
	BuiltBy string
	// Image is the container image with this program, for operator bundle. Optional.
	Image string
}

// Main runs the program as [Main] does, and exits.
func (p Program) Main() {
	inner := p.inner(Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()})
	inner.adopt, inner.source, inner.plugin = adoptGlobals, sourceOfMain(), pluginOf(os.Args[0])
	inner.main(os.Args[1:])
}

// Run runs one command line as [Run] does.
func (p Program) Run(ctx context.Context, args []string, streams Streams) int {
	return p.inner(streams).execute(ctx, args)
}

func (p Program) inner(streams Streams) *program {
	return &program{Streams: streams, parts: realParts(), registry: p.Registry, extra: p.Extra, login: p.Login, metrics: p.Metrics, samples: p.Samples, builtBy: p.BuiltBy, image: p.Image}
}

// Streams are the inputs and outputs of a program.
type Streams struct {
	// In has a person's answers. Nil means that no person can be asked.
	In io.Reader
	// Out receives results, Err logs and errors. Required.
	Out, Err io.Writer
	// Env is the environment, as "NAME=value". Nil means empty.
	Env []string
}

// Run runs one command line, without the program's name, and returns the exit code. It returns when the command is
// done; the run command stops in order after ctx ends. Registry and extra are as in [Main].
func Run(ctx context.Context, args []string, streams Streams, registry *actions.Registry, extra ...func(*dsl.Operator)) int {
	return Program{Registry: registry, Extra: extra}.Run(ctx, args, streams)
}

func (p *program) main(args []string) {
	ctx, release := untilSignal(context.Background(), func(code int) {
		if last := p.last.Load(); last != nil {
			(*last)()
		}
		os.Exit(code)
	})
	code := p.execute(ctx, args)
	release()
	os.Exit(code)
}

// untilSignal returns a context that ends with the first stop signal. A second one calls exit, except SIGHUP: both
// the kernel and the shell send it when a terminal is closed, so it does not mean impatience. The returned function
// restores the default handling of signals.
func untilSignal(ctx context.Context, exit func(code int)) (context.Context, func()) {
	signals, released := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // Notify would undo nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			var got os.Signal
			select {
			case got = <-signals:
			case <-released:
				return
			}
			if ctx.Err() != nil && got != syscall.SIGHUP {
				exit(exitInterrupted)
			}
			// Ctrl-C ends what reads the output, too, such as tee; that must not end an orderly stop.
			signal.Ignore(syscall.SIGPIPE)
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		wg.Wait()
		signal.Reset(syscall.SIGPIPE)
		cancel()
	}
}
