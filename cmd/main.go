// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// Main runs the program's command line and exits. It is all that a main package needs:
//
//	func main() { cmd.Main(handlers.Standard()) }
//
// The registry holds what configurations may name. Each extra function is called with the
// operator after its configuration was read, and may add resources and handlers in Go; with extra
// functions, --config is optional, and without it they name the operator too.
//
// The first SIGINT, SIGTERM or SIGHUP asks for an orderly stop, a second SIGINT or SIGTERM exits at
// once. A SIGHUP that is ignored at the start, as nohup does, stays ignored. Main sends what client-go and the API machinery log the same way as all other lines; that is global to
// the process, as is the exit, so it is done here and not in [Run].
func Main(registry *actions.Registry, extra ...func(*dsl.Operator)) {
	Program{Registry: registry, Extra: extra}.Main()
}

// Program is a command line with what few programs need besides; the others call [Main].
//
//	cmd.Program{Registry: handlers.Standard(), Login: vault.Login}.Main()
type Program struct {
	// Registry and Extra are those of [Main]. Registry is required.
	Registry *actions.Registry
	Extra    []func(*dsl.Operator)
	// Login gives the way to the API server, with its credentials, when a command first needs it. It counts more than the pod's
	// own access, $KUBECONFIG and ~/.kube/config, and less than --kubeconfig and --context. Credentials that run out are
	// renewed by what the config says: BearerTokenFile, ExecProvider, WrapTransport or a certificate's file. The config is
	// copied; its user agent is set. Nil means that there is none.
	Login func(ctx context.Context) (*rest.Config, error)
}

// Main runs the program as [Main] does, and exits.
func (p Program) Main() {
	inner := p.inner(Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()})
	inner.adopt = adoptGlobals
	inner.main(os.Args[1:])
}

// Run runs one command line as [Run] does.
func (p Program) Run(ctx context.Context, args []string, streams Streams) int {
	return p.inner(streams).execute(ctx, args)
}

func (p Program) inner(streams Streams) *program {
	return &program{Streams: streams, parts: realParts(), registry: p.Registry, extra: p.Extra, login: p.Login}
}

// Streams are what a program reads and writes.
type Streams struct {
	// In is what a person answers. Nil when nobody can be asked.
	In io.Reader
	// Out gets what was asked for, Err logs and errors. Required.
	Out, Err io.Writer
	// Env is the environment, as "NAME=value". Nil is an empty one.
	Env []string
}

// Run runs one command line, without the program's name, and returns the exit code. It returns
// when the command is done; the run command is done in good order some time after ctx ends.
// Registry and extra are those of [Main].
func Run(ctx context.Context, args []string, streams Streams, registry *actions.Registry, extra ...func(*dsl.Operator)) int {
	return Program{Registry: registry, Extra: extra}.Run(ctx, args, streams)
}

func (p *program) main(args []string) {
	ctx, release := untilSignal(context.Background(), os.Exit)
	code := p.execute(ctx, args)
	release()
	os.Exit(code)
}

// untilSignal returns a context that ends with the first signal to stop. A second one calls exit,
// but for SIGHUP: the kernel and the shell both send it when a terminal is closed, which is nobody
// who has lost patience. The function it returns gives the signals back.
func untilSignal(ctx context.Context, exit func(code int)) (context.Context, func()) {
	signals, released := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // to be notified would undo nohup
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
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		wg.Wait()
		cancel()
	}
}
