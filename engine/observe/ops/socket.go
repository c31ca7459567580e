// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// socket is a Unix socket that has got its name after it was opened.
type socket struct {
	net.Listener
	path   string
	remove sync.Once
}

// listenSocket listens on a Unix socket that only the user of this process may open, at any time: it is opened in a folder that others
// may not enter, and moved when it has its mode. It takes the place of one that a process has left behind.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := free(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".") // a short name: the path of a socket has some 100 bytes at most
	if err != nil {
		if at, is := errors.AsType[*fs.PathError](err); is {
			err = at.Err // the temporary name says nothing
		}
		return nil, err
	}
	defer os.RemoveAll(dir)
	hidden := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", hidden)
	if err != nil {
		return nil, err
	}
	if unix, is := listener.(*net.UnixListener); is {
		unix.SetUnlinkOnClose(false)
	}
	if err := errors.Join(os.Chmod(hidden, 0o600), os.Rename(hidden, path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &socket{Listener: listener, path: path}, nil
}

// free reports, as an error, that a path is taken by a process or by a file.
func free(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // if it is not missing, opening the socket says why
	}
	if info.Mode().Type() != os.ModeSocket {
		return syscall.EADDRINUSE
	}
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); err == nil {
		_ = conn.Close()
		return syscall.EADDRINUSE
	}
	return nil
}

// Close ends the socket, and removes it.
func (s *socket) Close() (err error) {
	err = s.Listener.Close()
	s.remove.Do(func() { err = errors.Join(err, os.Remove(s.path)) })
	return err
}
