// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig for another process, and returns its path. The file is removed when the test
// ends. Credentials and impersonation are those of config, which may also be a proxy's.
func WriteKubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	tls := config.TLSClientConfig
	file := api.NewConfig()
	file.Clusters["e2e"] = &api.Cluster{
		Server: config.Host, CertificateAuthority: tls.CAFile, CertificateAuthorityData: tls.CAData,
		InsecureSkipTLSVerify: tls.Insecure, TLSServerName: tls.ServerName,
	}
	file.AuthInfos["e2e"] = &api.AuthInfo{
		ClientCertificate: tls.CertFile, ClientCertificateData: tls.CertData,
		ClientKey: tls.KeyFile, ClientKeyData: tls.KeyData,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		Username: config.Username, Password: config.Password, Exec: config.ExecProvider,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	file.Contexts["e2e"] = &api.Context{Cluster: "e2e", AuthInfo: "e2e"}
	file.CurrentContext = "e2e"
	text, err := clientcmd.Write(*file)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatalf("writing kubeconfig: %v", err)
	}
	return path
}
