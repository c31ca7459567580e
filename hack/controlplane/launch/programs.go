// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Programs knows where the components' programs are.
type Programs struct {
	// Builtin names the components that this program has inside.
	Builtin []string
	// Assets is a folder with programs that are used instead of the built-in components.
	// Optional. It has to have etcd and kube-apiserver.
	Assets string
}

// Find returns the command that starts the component: a path and the arguments that come before
// the component's own.
func (p Programs) Find(name string) ([]string, error) {
	if p.Assets != "" {
		path := filepath.Join(p.Assets, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() {
			return []string{path}, nil
		}
		if name == Etcd || name == APIServer {
			return nil, fmt.Errorf("finding %s: KUBEBUILDER_ASSETS is %s, and it is not in there", name, p.Assets)
		}
	}
	if slices.Contains(p.Builtin, name) {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", name, err)
		}
		return []string{self, name}, nil
	}
	switch {
	case name == Etcd || name == APIServer:
		return nil, fmt.Errorf("finding %s: this build has none; set KUBEBUILDER_ASSETS or build without the tag assets", name)
	case p.Assets != "":
		return nil, fmt.Errorf("finding %s: neither in this build nor in %s; leave it out with --without", name, p.Assets)
	}
	return nil, fmt.Errorf("finding %s: not in this build; leave it out with --without", name)
}
