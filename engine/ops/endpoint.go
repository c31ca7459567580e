// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

// endpoint is one address of a server. Without an address, its methods do nothing.
type endpoint struct {
	flag, address string
	server        *http.Server
	listener      net.Listener
}

func newEndpoint(flag, address string, handler http.Handler, log logr.Logger) *endpoint {
	return &endpoint{flag: flag, address: address, server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 16,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelInfo),
	}}
}

func (e *endpoint) listen(ctx context.Context) error {
	if e.address == "" || e.address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return fmt.Errorf("listening on %s (--%s): %w", e.address, e.flag, err)
	}
	e.listener = listener
	return nil
}

func (e *endpoint) bound() string {
	if e.listener == nil {
		return ""
	}
	return e.listener.Addr().String()
}

func (e *endpoint) serve() error {
	if e.listener == nil {
		return nil
	}
	if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s (--%s): %w", e.bound(), e.flag, err)
	}
	return nil
}

func (e *endpoint) shutdown(ctx context.Context) error {
	if e.listener == nil {
		return nil
	}
	if err := e.server.Shutdown(ctx); err != nil {
		e.close()
		return fmt.Errorf("ending requests on %s (--%s): %w", e.bound(), e.flag, err)
	}
	return nil
}

// close ends everything at once. What it could complain about is closed already.
func (e *endpoint) close() {
	if e.listener != nil {
		_ = e.server.Close()
		_ = e.listener.Close()
	}
}
