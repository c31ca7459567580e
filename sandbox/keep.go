// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// often is the time between two looks whether there is something new to keep, for the case that the process is killed.
const often = 2 * time.Second

// ErrInUse is the error of [Start] for an Options.Keep that another process uses.
var ErrInUse = errors.New("another process uses it")

// keeper keeps the state of a server in a directory, which it has locked.
type keeper struct {
	dir    string
	unlock func()

	mu sync.Mutex
	// open: the state may be written. It may not before it was read, nor when another process may have the directory.
	open bool
	// kept is the mark of the state in the directory.
	kept server.Mark
}

// unfinished is the pattern of the files into which a state is written.
const unfinished = ".state-*"

// newKeeper makes and locks a directory.
func newKeeper(dir string) (*keeper, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keeping objects in %s: %w", dir, cause(err))
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	k := &keeper{dir: dir, unlock: unlock}
	if err := k.enter(); err != nil {
		unlock()
		return nil, err
	}
	return k, nil
}

// enter removes what a killed process has left in the directory.
func (k *keeper) enter() error {
	left, err := filepath.Glob(filepath.Join(k.dir, unfinished))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) file() string { return filepath.Join(k.dir, "state.json") }

// load gives a new server the state of the directory. It reports whether there is one.
func (k *keeper) load(server *server.Server) (found bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { k.open = err == nil }()
	if info, err := os.Stat(k.file()); err == nil && !info.Mode().IsRegular() { // opening a pipe waits for its writer
		return false, fmt.Errorf("reading %s: it is not a regular file", k.file())
	}
	in, err := os.Open(k.file())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	if err := server.Resume(in); err != nil {
		return false, fmt.Errorf("reading %s: %w; without the file, it begins anew", k.file(), err)
	}
	k.kept = server.Mark()
	return true, nil
}

// save keeps the state of the server, if it is another one, or if the file is gone. The file is replaced as a whole.
func (k *keeper) save(server *server.Server) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	mark := server.Mark()
	if _, err := os.Stat(k.file()); !k.open || mark == k.kept && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := k.write(server); err != nil {
		return fmt.Errorf("writing %s: %w", k.file(), cause(err))
	}
	k.kept = mark
	return nil
}

// cause is an error without the name of a file, which may be that of an unfinished one.
func cause(err error) error {
	if path, is := errors.AsType[*fs.PathError](err); is {
		return path.Err
	}
	return err
}

func (k *keeper) write(server *server.Server) error {
	return replaceFile(k.file(), unfinished, func(out *os.File) error {
		all := bufio.NewWriter(out)
		if err := server.Save(all); err != nil {
			return err
		}
		return all.Flush()
	})
}

// replaceFile writes a file that only this user may read. It replaces the file as a whole; unfinished is the pattern of the
// name that it has until then.
func replaceFile(path, unfinished string, write func(out *os.File) error) error {
	out, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // it is not there any more if all went well
	if err = write(out); err == nil {
		err = out.Sync()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// run saves the state from time to time until ctx ends, and in the end. It reports an error once while it stays.
func (k *keeper) run(ctx context.Context, server *server.Server, fault func(error)) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	said := ""
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		err := k.save(server)
		if err != nil && err.Error() != said {
			fault(err)
		}
		if said = ""; err != nil {
			said = err.Error()
		}
	}
}

// close saves the state once more and leaves the directory to others. A second call does nothing.
func (k *keeper) close(server *server.Server) {
	_ = k.save(server) // run has reported an error, or there is no time for one
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open = false; k.unlock != nil {
		k.unlock()
		k.unlock = nil
	}
}
