// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// folder is the directory of one control plane. The components run in it and are given relative
// paths, which also keeps the names of the sockets below the 108 bytes a system allows.
type folder string

const (
	pkiDir          = "pki"
	caCert          = pkiDir + "/ca.crt"
	caKey           = pkiDir + "/ca.key"
	serverCert      = pkiDir + "/apiserver.crt"
	serverKey       = pkiDir + "/apiserver.key"
	proxyCert       = pkiDir + "/front-proxy-client.crt"
	proxyKey        = pkiDir + "/front-proxy-client.key"
	accountKey      = pkiDir + "/service-account.key"
	tokensFile      = "tokens.csv"
	auditPolicyFile = "audit-policy.yaml"
	auditLogFile    = "audit.log"
	kubeconfigFile  = "kubeconfig"
	lockFile        = "lock"
	portFile        = "port"
)

// requestLog is the default audit policy: who asked for what and with which result, without bodies.
const requestLog = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// admin is the user of the kubeconfig that people get.
const admin = "admin"

// users are the API server's clients, with a name and groups each. The controller manager acts for all of
// its controllers, and kwok for all of its nodes, so both may do everything.
var users = map[string][]string{
	admin:             {admin, "system:masters"},
	ControllerManager: {"system:kube-controller-manager", "system:masters"},
	Scheduler:         {"system:kube-scheduler"},
	Kwok:              {"system:kwok", "system:masters"},
}

func (f folder) path(name string) string { return filepath.Join(string(f), name) }
func (f folder) log(name string) string  { return f.path(name + ".log") }

// write writes a file atomically, so that readers never see a part of it.
func (f folder) write(name string, data []byte) error {
	temporary := f.path("." + name + ".new")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(temporary, f.path(name)); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// prepareKeys makes the authority and its certificates, and returns it.
func (f folder) prepareKeys() (*authority, error) {
	ca, err := openAuthority(f.path(pkiDir))
	if err != nil {
		return nil, err
	}
	if err := keepKey(f.path(accountKey)); err != nil {
		return nil, err
	}
	server, err := ca.server("localhost", "127.0.0.1", "::1", "10.96.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return nil, err
	}
	if err := ca.save("apiserver", server); err != nil {
		return nil, err
	}
	proxy, err := ca.client("front-proxy-client")
	if err != nil {
		return nil, err
	}
	return ca, ca.save("front-proxy-client", proxy)
}

// kubeconfigFor returns a kubeconfig that needs no other file.
func kubeconfigFor(ca *authority, token, server, user string) []byte {
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: handwerk
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    token: %s
contexts:
- name: handwerk
  context:
    cluster: handwerk
    user: %[3]s
current-context: handwerk
`, server, base64.StdEncoding.EncodeToString(caPEM), user, token)
}
