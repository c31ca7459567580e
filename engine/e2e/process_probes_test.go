// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// addresses are where a program serves, as its log says.
type addresses struct{ Health, Metrics, Debug string }

func addressesOf(t *testing.T, program *cluster.Operator) (at addresses) {
	t.Helper()
	line := program.Await(t, `"msg":"starting"`)
	if err := json.Unmarshal([]byte(line), &at); err != nil {
		t.Fatalf("reading %s: %v", line, err)
	}
	return at
}

// ask gets what a program serves.
func ask(t *testing.T, address, path string) (code int, body string, err error) {
	t.Helper()
	client := &http.Client{Timeout: cluster.Patience}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// awaitReadyz asks until /readyz is 200 and has a line, and returns all of it.
func awaitReadyz(t *testing.T, program *cluster.Operator, line string) (body string) {
	t.Helper()
	address := addressesOf(t, program).Health
	eventually(t, "a line of /readyz: "+line, func() (bool, string) {
		code, text, err := ask(t, address, "/readyz?verbose")
		body = text
		return code == http.StatusOK && slices.Contains(strings.Split(body, "\n"), line), fmt.Sprintf("%d (%v):\n%s", code, err, body)
	})
	return body
}

func TestProgramServesProbesAndMetrics(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("probes")
	user.AllowIn(t, ns, fooRules()...)
	// Outside a pod the register of the kinds of children is in the kubeconfig's namespace. /readyz would have a line about it.
	user.AllowIn(t, metav1.NamespaceDefault, cluster.Rule("", "configmaps", "get", "create", "update"))
	program := plane.Operator(t, cluster.Launch{Config: user.Config(), Args: []string{"run", "--config", "samples/foo/operator.yaml", "-n", ns}})
	got := awaitReadyz(t, program, "[+]resource/foos.v1alpha1.samplecontroller.k8s.io ok")
	want := "[+]started ok\n" +
		"[+]resource/foos.v1alpha1.samplecontroller.k8s.io ok\n" +
		"[+]child/foos.v1alpha1.samplecontroller.k8s.io/deployments.v1.apps ok\n" +
		"readyz check passed\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("/readyz?verbose (-want +got):\n%s", diff)
	}
	at := addressesOf(t, program)
	for path, want := range map[string]string{
		"/healthz": "ok", "/healthz?verbose": "[+]ping ok\nhealthz check passed\n", "/readyz": "ok",
		"/readyz/resource/foos.v1alpha1.samplecontroller.k8s.io": "ok",
	} {
		if code, body, err := ask(t, at.Health, path); code != http.StatusOK || body != want {
			t.Errorf("%s is %d %q (%v), want %q", path, code, body, err, want)
		}
	}
	stage := stageIn(ns)
	stage.settled(t, "a", 1)
	metrics := awaitMetrics(t, at.Metrics, `handwerk_cache_objects{resource="foos.v1alpha1.samplecontroller.k8s.io"} 1`)
	for _, want := range []string{
		`handwerk_resource_up{resource="foos.v1alpha1.samplecontroller.k8s.io"} 1`,
		`handwerk_parked_keys{resource="foos.v1alpha1.samplecontroller.k8s.io"} `,
		`handwerk_breaker_open{resource="foos.v1alpha1.samplecontroller.k8s.io"} 0`,
		`handwerk_informer_age_seconds{resource="foos.v1alpha1.samplecontroller.k8s.io"} `,
		`handwerk_handler_runs_total{cause="create",handler="deployment",outcome="success",resource="foos.v1alpha1.samplecontroller.k8s.io"} 1`,
		`handwerk_handler_duration_seconds_count{handler="status",resource="foos.v1alpha1.samplecontroller.k8s.io"} `,
		`handwerk_writes_total{resource="foos.v1alpha1.samplecontroller.k8s.io",target="child"} 1`,
		`handwerk_writes_total{resource="foos.v1alpha1.samplecontroller.k8s.io",target="status"} `,
		`workqueue_depth{controller="foos.v1alpha1.samplecontroller.k8s.io",name="foos.v1alpha1.samplecontroller.k8s.io"} `,
		`workqueue_adds_total{controller="foos.v1alpha1.samplecontroller.k8s.io",name="foos.v1alpha1.samplecontroller.k8s.io"} `,
		`rest_client_requests_total{`, `leader_election_master_status{name="foo-leader"} 1`,
		`go_goroutines `, `process_resident_memory_bytes `,
	} {
		if !strings.Contains(metrics, "\n"+want) {
			t.Errorf("/metrics has no line that begins with %s", want)
		}
	}
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	if _, _, err := ask(t, at.Health, "/healthz"); err == nil {
		t.Error("/healthz answers after the end")
	}
	mustLogNoError(t, program.Lines)
}

// awaitMetrics asks until /metrics has a line, and returns all of it.
func awaitMetrics(t *testing.T, address, line string) (body string) {
	t.Helper()
	eventually(t, "a line of /metrics: "+line, func() (bool, string) {
		code, text, err := ask(t, address, "/metrics")
		body = text
		return code == http.StatusOK && strings.Contains(body, "\n"+line+"\n"), fmt.Sprintf("%d (%v):\n%s", code, err, body)
	})
	return body
}
