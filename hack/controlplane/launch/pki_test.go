// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestIdentities has a server and a client with our certificates talk to each other.
func TestIdentities(t *testing.T) {
	f := folder(t.TempDir())
	ca, err := f.prepareKeys()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		fmt.Fprint(w, subject.CommonName+" "+subject.Organization[0])
	}))
	pair, err := tls.LoadX509KeyPair(f.path(serverCert), f.path(serverKey))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	id, err := ca.client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(ca, id, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); got != "admin system:masters" {
		t.Errorf("the server sees %q", got)
	}
}

func TestKeysOutliveARestart(t *testing.T) {
	f := folder(t.TempDir())
	first, err := f.prepareKeys()
	if err != nil {
		t.Fatal(err)
	}
	account, err := os.ReadFile(f.path(accountKey))
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.prepareKeys()
	if err != nil {
		t.Fatal(err)
	}
	if !first.cert.Equal(second.cert) {
		t.Error("the authority is another after a restart")
	}
	if again, _ := os.ReadFile(f.path(accountKey)); !bytes.Equal(account, again) {
		t.Error("the key of the service accounts is another after a restart")
	}
}

func TestBrokenAuthorityIsReported(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openAuthority(dir); err == nil {
		t.Error("no error")
	}
}

func TestPrivateFilesArePrivate(t *testing.T) {
	f := folder(t.TempDir())
	if _, err := f.prepareKeys(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{caKey, serverKey, proxyKey, accountKey} {
		info, err := os.Stat(f.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestKubeconfig(t *testing.T) {
	f := folder(t.TempDir())
	ca, err := f.prepareKeys()
	if err != nil {
		t.Fatal(err)
	}
	id, err := ca.client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			Name string
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			}
		}
		Current string `json:"current-context"`
	}
	if err := yaml.Unmarshal(kubeconfigFor(ca, id, "https://127.0.0.1:1", "admin"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Current != "handwerk" || got.Clusters[0].Cluster.Server != "https://127.0.0.1:1" || got.Users[0].Name != "admin" {
		t.Errorf("got %+v", got)
	}
	if _, err := tls.X509KeyPair(got.Users[0].User.Cert, got.Users[0].User.Key); err != nil {
		t.Errorf("the key pair is broken: %v", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(got.Clusters[0].Cluster.CA) {
		t.Error("the authority is broken")
	}
}
