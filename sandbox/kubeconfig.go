// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is the file by which clients find a sandbox.
type kubeconfig struct {
	path    string
	content []byte
	// temporary is the folder of the file if it goes with the file.
	temporary string
}

// newKubeconfig chooses the path of the file. The path is absolute: clients run in other folders.
func newKubeconfig(ctx context.Context, o Options) (k kubeconfig, err error) {
	switch {
	case o.Kubeconfig != "":
		k.path, err = filepath.Abs(o.Kubeconfig)
	case o.Keep != "":
		k.path, err = filepath.Abs(filepath.Join(o.Keep, "kubeconfig"))
	default:
		if k.temporary, err = os.MkdirTemp("", "sandbox-"); err != nil {
			return k, fmt.Errorf("making a folder for the kubeconfig: %w", err)
		}
		k.path = filepath.Join(k.temporary, "kubeconfig")
	}
	if err == nil {
		err = mayReplace(ctx, k.path, o.Context)
	}
	if err != nil {
		return k, fmt.Errorf("writing kubeconfig %s: %w", k.path, cause(err))
	}
	return k, nil
}

// mayReplace returns an error unless the file is missing, empty, or left from a sandbox that no longer runs.
func mayReplace(ctx context.Context, path, name string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // reading a pipe waits for its writer
		return errors.New("it is not a regular file")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	there, err := clientcmd.Load(data)
	if err != nil || there.CurrentContext != name || there.Clusters[name] == nil {
		return errors.New("the file is there and belongs to something else")
	}
	if serves(ctx, there.Clusters[name]) {
		return fmt.Errorf("the file is that of a sandbox that runs: %w", ErrInUse)
	}
	return nil
}

// serves reports whether the server of a kubeconfig runs. Another server on its port has another certificate.
func serves(ctx context.Context, cluster *api.Cluster) bool {
	at, err := url.Parse(cluster.Server)
	if err != nil {
		return false
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(cluster.CertificateAuthorityData)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// write writes the file. Readers find all of it or nothing, and only this user may read it.
func (k *kubeconfig) write(content []byte) error {
	if err := k.replace(content); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", k.path, cause(err))
	}
	k.content = content
	return nil
}

func (k *kubeconfig) replace(content []byte) error {
	if err := os.MkdirAll(filepath.Dir(k.path), 0o755); err != nil {
		return err
	}
	return replaceFile(k.path, ".kubeconfig-*", func(out *os.File) error {
		_, err := out.Write(content)
		return err
	})
}

// remove removes the file, unless it is another one by now.
func (k *kubeconfig) remove() {
	if now, err := os.ReadFile(k.path); err == nil && k.content != nil && bytes.Equal(now, k.content) {
		_ = os.Remove(k.path) // if it stays, it does no harm: the port is closed
	}
	if k.temporary != "" {
		_ = os.RemoveAll(k.temporary) // it is a temporary folder
	}
}
