// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// protectsMetrics checks that a program that runs with --metrics-secure asks the API server who reads its metrics: a service
// account gets them with a ClusterRole alone, and its token does not open the API server's other doors.
func protectsMetrics(t *testing.T, program *cluster.Operator) {
	t.Helper()
	ns := plane.Namespace(t)
	address := addressesOf(t, program).Metrics
	plane.Apply(t, ns, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: prometheus}\n")
	token := tokenOf(t, ns, "prometheus")
	for bearer, want := range map[string]string{
		"":            "401 send the bearer token of an account that may get /metrics\n",
		"made-up":     "401 the API server does not know this token\n",
		token + "abc": "401 the API server does not know this token\n",
		token:         "403 system:serviceaccount:" + ns + ":prometheus may not get /metrics: bind a ClusterRole with this nonResourceURL\n",
	} {
		if got := scrape(t, address, bearer); got != want {
			t.Errorf("/metrics gives %.300q, want %q", got, want)
		}
	}
	role := fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-metrics}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s-metrics}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: %[1]s}]`, ns)
	granted := plane.Apply(t, "", role)
	t.Cleanup(func() { withdraw(t, granted) })
	eventually(t, "the right to get /metrics", func() (bool, string) {
		got := scrape(t, address, token)
		return strings.HasPrefix(got, "200 ") && strings.Contains(got, "\nleader_election_master_status{"), got
	})
}

// tokenOf returns a token of a service account.
func tokenOf(t *testing.T, namespace, account string) string {
	t.Helper()
	request, err := plane.Kubernetes().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// scrape asks for /metrics as Prometheus does, and returns the code and the text.
func scrape(t *testing.T, address, token string) string {
	t.Helper()
	client := &http.Client{Timeout: cluster.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(text))
}
