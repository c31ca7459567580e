// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/server/local"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// readyAfter is how long a Pod takes to be ready: long enough that an operator sees one that is not.
const readyAfter = 300 * time.Millisecond

// contextName is the name of the only context in the kubeconfig.
const contextName = "play"

// cluster is an API server in the process, in which workloads come alive.
type cluster struct {
	*server.Server
	// keeper keeps the state; nil if it is not kept.
	keeper *keeper
	// kubeconfig is the path of the file, and temporary that of its directory if that is to be removed.
	kubeconfig, temporary string

	stop context.CancelFunc
	work sync.WaitGroup
}

// serve starts an API server and writes the kubeconfig for it.
func (s Settings) serve(ctx context.Context, name string, lines *lines) (_ *cluster, err error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the operator writes until it has stopped
	settings := complete.Settings()
	settings.OwnWrites = lines.own
	out := &cluster{Server: server.New(settings), stop: stop}
	defer func() {
		if err != nil {
			out.close()
		}
	}()
	kept, err := out.open(s.Keep)
	if err != nil {
		return nil, err
	}
	if s.Last != nil {
		s.Last(out.leave)
	}
	listener, err := local.Listen(ctx, out.Server, "127.0.0.1:0", func(next http.Handler) http.Handler {
		return &outside{next: next, server: out.Admin(), lines: lines}
	})
	if err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	out.work.Go(listener.Wait)
	if err := listener.WriteKubeconfig(out.kubeconfig, contextName); err != nil {
		return nil, err
	}
	out.enliven(ctx, lines)
	if out.keeper != nil {
		out.work.Go(func() { out.keeper.run(ctx, out.Server, func(err error) { lines.fault("", err) }) })
	}
	lines.banner(name, out.kubeconfig, s.Keep, kept)
	return out, nil
}

// open finds the place of the kubeconfig: in a directory whose state the server takes over, which it reports, or in a
// temporary one.
func (s *cluster) open(keep string) (kept bool, err error) {
	if keep == "" {
		s.temporary, err = os.MkdirTemp("", "operator-play-")
		s.kubeconfig = filepath.Join(s.temporary, "kubeconfig")
		return false, err
	}
	if s.keeper, err = newKeeper(keep); err != nil {
		return false, err
	}
	s.kubeconfig = s.keeper.kubeconfig()
	return s.keeper.load(s.Server)
}

// enliven makes workloads come alive.
func (s *cluster) enliven(ctx context.Context, lines *lines) {
	config := s.config()
	config.UserAgent = "stages"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &observer{next: next, client: "stages", lines: lines, says: lines.staged}
	})
	ctx = logr.NewContext(ctx, lines.logger())
	s.work.Go(func() {
		err := workloads.Run(ctx, config, workloads.Settings{Plan: workloads.NewPlan(workloads.Rule{Delay: readyAfter})})
		if err != nil && !errors.Is(err, context.Canceled) {
			lines.fault("", err)
		}
	})
}

// config returns the config of a client in the process that has all rights.
func (s *cluster) config() *rest.Config {
	return &rest.Config{
		Host: "http://play", Transport: s.Admin(), QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// close ends the server and leaves the file system.
func (s *cluster) close() {
	s.stop()
	s.work.Wait()
	s.leave()
}

// leave removes what the server has put into the file system, but for the state that it keeps. It may be called while the
// server serves, and more than once.
func (s *cluster) leave() {
	if s.keeper != nil {
		s.keeper.close(s.Server)
	}
	if s.temporary != "" {
		_ = os.RemoveAll(s.temporary) // it is a temporary directory
	}
}
