// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/handwerk-dev/handwerk/engine/apiserver"
)

// often is the time between two looks whether there is something new to keep, for the case that the process is killed.
const often = 2 * time.Second

// errTaken is the error for a directory that another process uses.
var errTaken = errors.New("another process plays with it")

// keeper keeps the state of a server in a directory, which it has locked.
type keeper struct {
	dir    string
	unlock func()
	// kept is the version of the state in the directory.
	kept int64
}

// newKeeper makes and locks a directory.
func newKeeper(dir string) (*keeper, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return &keeper{dir: dir, unlock: unlock}, nil
}

func (k *keeper) file() string { return filepath.Join(k.dir, "state.json") }

// load gives a new server the state of the directory. It reports whether there is one.
func (k *keeper) load(server *apiserver.Server) (bool, error) {
	in, err := os.Open(k.file())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	if err := server.Resume(in); err != nil {
		return false, fmt.Errorf("reading %s: %w", k.file(), err)
	}
	k.kept = server.Version()
	return true, nil
}

// save keeps the state of the server, if it is another one. The file is replaced as a whole.
func (k *keeper) save(server *apiserver.Server) error {
	version := server.Version()
	if version == k.kept {
		return nil
	}
	out, err := os.CreateTemp(k.dir, ".state-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // it is not there any more if all went well
	all := bufio.NewWriter(out)
	if err = server.Save(all); err == nil {
		err = all.Flush()
	}
	if err == nil {
		err = out.Sync()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(out.Name(), k.file())
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", k.file(), err)
	}
	k.kept = version
	return nil
}

// run saves the state from time to time until ctx ends, and in the end.
func (k *keeper) run(ctx context.Context, server *apiserver.Server, fault func(error)) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if err := k.save(server); err != nil {
			fault(err)
		}
	}
}
