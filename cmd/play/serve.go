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

	"github.com/handwerk-dev/handwerk/engine/apiserver"
	"github.com/handwerk-dev/handwerk/engine/apiserver/complete"
	"github.com/handwerk-dev/handwerk/engine/apiserver/local"
	"github.com/handwerk-dev/handwerk/engine/apiserver/stages"
)

// readyAfter is how long a Pod takes to be ready: long enough that an operator sees one that is not.
const readyAfter = 300 * time.Millisecond

// server is an API server in the process, in which workloads come alive.
type server struct {
	*apiserver.Server
	dir  string
	stop context.CancelFunc
	work sync.WaitGroup
}

// serve starts an API server and writes the kubeconfig for it.
func serve(ctx context.Context, name string, lines *lines) (_ *server, err error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the operator writes until it has stopped
	s := &server{Server: apiserver.New(complete.Settings()), stop: stop}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	listener, err := local.Listen(ctx, s.Server, "127.0.0.1:0", func(next http.Handler) http.Handler {
		return &outside{next: next, server: s.Admin(), say: lines.wrote}
	})
	if err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	s.work.Go(listener.Wait)
	if s.dir, err = os.MkdirTemp("", "operator-play-"); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "kubeconfig")
	if err := listener.WriteKubeconfig(path, "play"); err != nil {
		return nil, err
	}
	s.enliven(ctx, lines)
	lines.banner(name, path)
	return s, nil
}

// enliven makes workloads come alive.
func (s *server) enliven(ctx context.Context, lines *lines) {
	config := s.config()
	config.UserAgent = "stages"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &observer{next: next, client: "stages", say: lines.staged}
	})
	ctx = logr.NewContext(ctx, lines.logger())
	s.work.Go(func() {
		err := stages.Run(ctx, config, stages.Settings{Plan: stages.NewPlan(stages.Rule{Delay: readyAfter})})
		if err != nil && !errors.Is(err, context.Canceled) {
			lines.fault("", err)
		}
	})
}

// config returns the config of a client in the process that has all rights.
func (s *server) config() *rest.Config {
	return &rest.Config{
		Host: "http://play", Transport: s.Admin(), QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// close ends the server and removes what it has put into the file system.
func (s *server) close() {
	s.stop()
	s.work.Wait()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // it is a temporary directory
	}
}
