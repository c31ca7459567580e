// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Own is the control plane of a single test, for faults that would break other tests: only an API server and its
// etcd.
type Own struct {
	Cluster

	t    testing.TB
	crds []string
}

// Own starts a control plane for the test, with the CRDs in these files of the module. It stops when the test ends.
func (c *Cluster) Own(t testing.TB, crds ...string) *Own {
	t.Helper()
	o := &Own{Cluster: Cluster{root: c.root, dir: t.TempDir(), bare: true}, t: t}
	for _, path := range crds {
		o.crds = append(o.crds, filepath.Join(c.root, path))
	}
	t.Cleanup(func() {
		if o.plane != nil {
			o.Halt()
		}
	})
	o.Resume()
	return o
}

// Halt stops the control plane.
func (o *Own) Halt() {
	o.t.Helper()
	if err := o.stopPlane(); err != nil {
		o.t.Fatalf("stopping control plane: %v", err)
	}
	o.plane = nil
}

// Resume starts the control plane with etcd's data.
func (o *Own) Resume() {
	o.t.Helper()
	kubeconfig, err := o.startPlane(o.crds)
	if err == nil {
		err = o.connect(kubeconfig)
	}
	if err != nil {
		o.t.Fatalf("starting control plane: %v", err)
	}
}

// Backup copies etcd's data. The returned function restores the copy. Both stop and restart the control plane.
func (o *Own) Backup() (restore func()) {
	o.t.Helper()
	data, copied := filepath.Join(o.dir, "plane", "etcd"), filepath.Join(o.dir, "backup")
	o.Halt()
	o.replace(copied, data)
	o.Resume()
	return func() {
		o.t.Helper()
		o.Halt()
		o.replace(data, copied)
		o.Resume()
	}
}

// replace replaces a folder by a copy of another.
func (o *Own) replace(folder, by string) {
	o.t.Helper()
	err := os.RemoveAll(folder)
	if err == nil {
		err = os.CopyFS(folder, os.DirFS(by))
	}
	if err == nil {
		err = os.Chmod(folder, 0o700) // etcd requires it
	}
	if err != nil {
		o.t.Fatalf("copying etcd's data: %v", err)
	}
}

// FillDisk makes etcd refuse all writes, as when its quota is exhausted, until the returned function is called.
func (o *Own) FillDisk() (free func()) {
	o.t.Helper()
	o.alarm("ACTIVATE")
	return func() {
		o.t.Helper()
		o.alarm("DEACTIVATE")
	}
}

// alarm raises or clears etcd's alarm for lack of space, by etcd's JSON gateway.
func (o *Own) alarm(action string) {
	o.t.Helper()
	socket := filepath.Join(o.dir, "plane", "etcd.sock")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "http://etcd/v3/maintenance/alarm", strings.NewReader(`{"action":"`+action+`","alarm":"NOSPACE"}`))
	if err != nil {
		o.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		o.t.Fatalf("setting etcd's alarm: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		o.t.Fatalf("setting etcd's alarm: %s", response.Status)
	}
}
