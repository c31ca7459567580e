// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// Own is a control plane of one test, for faults that other tests would not survive: an API server and its etcd, and nothing else.
type Own struct {
	Cluster

	t    testing.TB
	crds []string
}

// Own starts a control plane for the test, with the CRDs in these files of the module. It ends with the test.
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

// Backup copies etcd's data. The function that it returns puts the copy back. Both stop the control plane, and start it again.
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

// replace makes a folder a copy of another one.
func (o *Own) replace(folder, by string) {
	o.t.Helper()
	err := os.RemoveAll(folder)
	if err == nil {
		err = os.CopyFS(folder, os.DirFS(by))
	}
	if err == nil {
		err = os.Chmod(folder, 0o700) // etcd insists
	}
	if err != nil {
		o.t.Fatalf("copying etcd's data: %v", err)
	}
}
