// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// startTimeout is generous: on a machine that compiles at the same time everything is slow.
	startTimeout = 3 * time.Minute
	portAttempts = 5
	// patience is how long a component may take to end before it is killed.
	patience = 5 * time.Second
)

// plane is a control plane that is running, being started or being stopped.
type plane struct {
	settings Settings
	programs Programs
	folder   folder
	ca       *authority
	tokens   map[string]string // by the names of users
	port     int
	running  []*process    // in the order of their start
	died     chan *process // those that ended without being asked to
	stopping chan struct{} // closed when the stop begins
	watchers sync.WaitGroup
}

// Run starts a control plane and keeps it until ctx ends, which is no error, or until one of its
// components ends by itself, which is. When it returns, no component is left. It prints one line to
// out when everything is ready.
func Run(ctx context.Context, s Settings, programs Programs, out, errOut io.Writer) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("making folder: %w", err)
	}
	p := &plane{
		settings: s, programs: programs, folder: folder(s.Dir),
		died: make(chan *process, 16), stopping: make(chan struct{}),
	}
	held, err := lock(p.folder.path(lockFile))
	if err != nil {
		return err
	}
	defer held.Close()
	defer p.stop()

	if err := p.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("starting control plane: %w", err)
	}
	fmt.Fprintf(out, "ready: kubeconfig %s (%s)\n", p.folder.path(kubeconfigFile), p.url())
	select {
	case <-ctx.Done():
		fmt.Fprintln(errOut, "stopping")
		return nil
	case dead := <-p.died:
		return dead.death()
	}
}

// start returns when everything is ready and the kubeconfig says so.
func (p *plane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("not ready in time"))
	defer cancel()
	if err := p.findAll(); err != nil {
		return err
	}
	crds, err := readCRDs(p.settings.CRDs)
	if err != nil {
		return err
	}
	if err := p.prepare(); err != nil {
		return err
	}
	if err := p.launch(Etcd); err != nil {
		return err
	}
	api, err := p.startAPIServer(ctx)
	if err != nil {
		return err
	}
	if err := p.installCRDs(ctx, api, crds); err != nil {
		return err
	}
	if err := p.startClients(ctx, api); err != nil {
		return err
	}
	return p.folder.write(kubeconfigFile, kubeconfigFor(p.ca, p.tokens[admin], p.url(), admin))
}

// findAll fails early when a component is missing.
func (p *plane) findAll() error {
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok} {
		if _, err := p.programs.Find(name); p.settings.Has(name) && err != nil {
			return err
		}
	}
	return nil
}

// prepare writes what the components read. A kubeconfig of an earlier run is removed: the file says that the control plane
// is ready.
func (p *plane) prepare() error {
	if err := os.RemoveAll(p.folder.path(kubeconfigFile)); err != nil {
		return fmt.Errorf("removing old kubeconfig: %w", err)
	}
	if err := p.folder.write(auditPolicyFile, []byte(requestLog)); err != nil {
		return err
	}
	var err error
	if p.ca, err = p.folder.prepareKeys(); err != nil {
		return err
	}
	p.tokens, err = p.folder.prepareTokens()
	return err
}

// startAPIServer starts the API server and waits until it is ready. Where the port is not a
// given, it tries another when somebody else was quicker.
func (p *plane) startAPIServer(ctx context.Context) (*client, error) {
	for attempt := 1; ; attempt++ {
		var err error
		if p.port, err = pickPort(p.settings.Port, lastPort(p.folder.path(portFile))); err != nil {
			return nil, err
		}
		if err := p.folder.write(portFile, fmt.Appendln(nil, p.port)); err != nil {
			return nil, err
		}
		if err := p.launch(APIServer); err != nil {
			return nil, err
		}
		api := newClient(p.ca, p.tokens[admin], p.url())
		err = p.wait(ctx, "the API server", api.ready)
		if err == nil {
			return api, nil
		}
		taken := strings.Contains(err.Error(), "address already in use")
		if !taken || p.settings.Port != 0 || attempt == portAttempts {
			return nil, err
		}
	}
}

func (p *plane) installCRDs(ctx context.Context, api *client, crds []manifest) error {
	if err := api.applyCRDs(ctx, crds); err != nil {
		return err
	}
	return p.wait(ctx, "the CRDs", func(ctx context.Context) error { return api.established(ctx, crds) })
}

// startClients starts everything that works through the API server and waits until pods can be
// created, scheduled and run, as far as the components for it were asked for.
func (p *plane) startClients(ctx context.Context, api *client) error {
	for _, name := range []string{ControllerManager, Scheduler, Kwok} {
		if !p.settings.Has(name) {
			continue
		}
		if err := p.folder.write(name+".kubeconfig", kubeconfigFor(p.ca, p.tokens[name], p.url(), name)); err != nil {
			return err
		}
		if err := p.launch(name); err != nil {
			return err
		}
	}
	if p.settings.Has(Kwok) {
		if err := p.wait(ctx, "the node", api.nodeReady); err != nil {
			return err
		}
	}
	if p.settings.Has(ControllerManager) {
		return p.wait(ctx, "the default service account", api.accountReady)
	}
	return nil
}

func (p *plane) url() string { return fmt.Sprintf("https://127.0.0.1:%d", p.port) }

// launch starts one component and watches over it.
func (p *plane) launch(name string) error {
	command, err := p.programs.Find(name)
	if err != nil {
		return err
	}
	command = append(command, arguments(name, p.settings, p.port)...)
	started, err := startProcess(name, command, string(p.folder), p.folder.log(name), "KWOK_WORKDIR="+string(p.folder))
	if err != nil {
		return err
	}
	p.running = append(p.running, started)
	p.watchers.Go(func() {
		<-started.done
		select {
		case <-p.stopping:
		default:
			p.died <- started
		}
	})
	return nil
}

// wait asks again and again until check succeeds. It fails when a component dies or time is up.
func (p *plane) wait(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case dead := <-p.died:
			return dead.death()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: last answer: %w", what, context.Cause(ctx), err)
		}
	}
}

// stop ends all components and waits for them: the API server's clients first, all at once, then the
// API server, and etcd last, without which the API server would not end cleanly.
func (p *plane) stop() {
	close(p.stopping)
	var clients sync.WaitGroup
	for _, each := range p.running {
		if each.name != Etcd && each.name != APIServer {
			clients.Go(func() { each.stop(patience) })
		}
	}
	clients.Wait()
	for _, name := range []string{APIServer, Etcd} {
		for _, each := range p.running {
			if each.name == name {
				each.stop(patience)
			}
		}
	}
	p.watchers.Wait()
}
