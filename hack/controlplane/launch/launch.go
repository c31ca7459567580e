// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package launch runs a Kubernetes control plane on one machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kwok, each a child process, all state in one folder.
//
// A component is this same program started by the component's name, or, where KUBEBUILDER_ASSETS
// names a folder, the program of that name in there. A start goes in this order: the folder is
// locked, certificates, etcd and API server, CRDs, the clients of the API server, and at last the
// kubeconfig, whose appearance says that all of it works. A stop goes the other way round.
//
// Only the API server listens on TCP, on the loopback interface. etcd is spoken to over a Unix
// socket, the other components serve nothing, so several control planes run side by side.
package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `controlplane runs a real Kubernetes control plane on this machine, without containers.

Usage:
  controlplane start --dir DIR [flags]   run until interrupted
  controlplane version                   print the versions of the components
  controlplane COMPONENT [flags]         run one component as it is: etcd, kube-apiserver,
                                         kube-controller-manager, kube-scheduler or kwok

Start writes DIR/kubeconfig once everything is ready and then prints "ready: …".
Try it:
  controlplane start --dir /tmp/cp &
  kubectl --kubeconfig /tmp/cp/kubeconfig get nodes

Where KUBEBUILDER_ASSETS names a folder, etcd and kube-apiserver are taken from there, and so are
kube-controller-manager and kube-scheduler if they are present.

Flags of start:
`

// Main runs the command line args, given without the program's name, and returns the exit code:
// 0 for success, 1 for a failure, 2 for a wrong command line. builtin names the components that
// this program has inside.
func Main(args, builtin []string) int {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	// The first signal asks for an orderly end; released, a second one ends the launcher at once,
	// and its children with it.
	context.AfterFunc(ctx, release)

	err := run(ctx, args, builtin, os.Stdout, os.Stderr)
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "controlplane: %v (see controlplane --help)\n", err)
		return 2
	default:
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		return 1
	}
}

func run(ctx context.Context, args, builtin []string, out, errOut io.Writer) error {
	programs := Programs{Builtin: builtin, Assets: os.Getenv("KUBEBUILDER_ASSETS")}
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "start":
		settings, err := ParseStart(args, out)
		if err != nil {
			return err
		}
		return Run(ctx, settings, programs, out, errOut)
	case "version", "--version":
		return PrintVersions(ctx, programs, out)
	case "help", "--help", "-h", "-help":
		_, err := ParseStart([]string{"--help"}, out)
		return err
	}
	if known(command) {
		return usageError("this build has no " + command)
	}
	return usageError(fmt.Sprintf("unknown command %q", command))
}
