// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheServerIsTrustedAndGetsTheToken has a server with our certificate and the launcher's client talk to each other.
func TestTheServerIsTrustedAndGetsTheToken(t *testing.T) {
	f := folder(t.TempDir())
	ca, err := f.prepareKeys()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	pair, err := tls.LoadX509KeyPair(f.path(serverCert), f.path(serverKey))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()

	body, err := newClient(ca, "secret", server.URL).get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); got != "Bearer secret" {
		t.Errorf("the server sees %q", got)
	}
}

func TestTokensOutliveARestart(t *testing.T) {
	f := folder(t.TempDir())
	first, err := f.prepareTokens()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(f.path(tokensFile))
	if err != nil {
		t.Fatal(err)
	}
	if line := first[admin] + ",admin,admin,system:masters\n"; first[admin] == "" || !strings.Contains(string(file), line) {
		t.Errorf("tokens %v\n%s\nwant a line %s", first, file, line)
	}
	if second, err := f.prepareTokens(); err != nil || !maps.Equal(first, second) {
		t.Errorf("tokens after a restart %v, %v, want %v", second, err, first)
	}
	if err := f.write(tokensFile, []byte("broken\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.prepareTokens(); err == nil || !strings.Contains(err.Error(), "reading "+tokensFile) {
		t.Errorf("error %v for a file that is no list of tokens, want one that names it", err)
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
				Token string
			}
		}
		Current string `json:"current-context"`
	}
	if err := yaml.Unmarshal(kubeconfigFor(ca, "secret", "https://127.0.0.1:1", "admin"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Current != "handwerk" || got.Clusters[0].Cluster.Server != "https://127.0.0.1:1" || got.Users[0].Name != "admin" {
		t.Errorf("got %+v", got)
	}
	if got := got.Users[0].User.Token; got != "secret" {
		t.Errorf("token %q", got)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(got.Clusters[0].Cluster.CA) {
		t.Error("the authority is broken")
	}
}
