// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	answer "github.com/handwerk-dev/handwerk/engine/operate/status"
	"github.com/handwerk-dev/handwerk/handlers"
)

// askedOperator has an object that is ready, one that waits, and a right that is missing.
const askedOperator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: asked}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - id: config
        apply:
          config:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${self.metadata.name}"}
            data: {value: "${self.spec.value}"}
`

// TestStatusOfARunningOperator holds that a user with the rights to list Leases, to get Pods and to forward ports learns how an
// operator is, through the API server alone: it forwards the port to a kubelet, which the test plays.
func TestStatusOfARunningOperator(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, []byte(askedOperator), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{
		Args: []string{"run", "--config", config, "-n", ns, "--leader-elect", "--leader-elect-namespace", ns}, Env: []string{"POD_NAME=asked-0"},
	})
	plane.Objects("works.v1.e2e.example.com", ns).Create(t, work("a", "1"))
	plane.Objects("configmaps.v1", ns).Await(t, "a", "made", func(o *unstructured.Unstructured) bool { return o != nil })
	address := addressesOf(t, program).Debug
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	user := plane.User("asker")
	user.AllowIn(t, ns, cluster.Rule("coordination.k8s.io", "leases", "list"), cluster.Rule("", "pods", "get"))
	mayForward := user.AllowIn(t, ns, cluster.Rule("", "pods/portforward", "get", "create"))
	podOnKubelet(t, ns, "asked-0", "--debug-bind-address=127.0.0.1:"+port)

	byAddress := []string{"--address", address}
	byLease := []string{"--operator", "asked", "--operator-namespace", ns}
	for name, args := range map[string][]string{"at its address": byAddress, "through the API server": byLease, "by its Pod": {"--pod", "asked-0", "--operator-namespace", ns}} {
		var s answer.Status
		eventually(t, name+" it says that its object is ready", func() (bool, string) {
			code, out, complaint := statusOf(t, user.Config(), append(args, "-o", "json")...)
			if code != 0 {
				return false, complaint
			}
			if s = (answer.Status{}); json.Unmarshal([]byte(out), &s) != nil {
				return false, out
			}
			return len(s.Resources) == 1 && s.Resources[0].Health["ready"] == 1, out
		})
		r := s.Resources[0]
		got := []any{s.Operator, s.State, s.Leader.Leads, s.Leader.Lock, strings.HasPrefix(s.Process, "asked-0_"), s.Configuration.Files, r.Name, r.State, r.Objects, r.Bytes > 100, r.Queue.Workers, len(r.Sources)}
		want := []any{"asked", answer.Working, true, ns + "/asked-leader", true, []string{config}, "works.v1.e2e.example.com", "running", 1, true, 4, 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	mustRun(t, "pause", "--operator", "asked", "-m", "looking") // the Lease says where the processes read it
	program.Await(t, "operator is paused; no handler runs")
	mustRun(t, "resume", "--operator", "asked")
	program.Await(t, "operator is no longer paused")
	mayForward.Revoke(t)
	code, _, complaint := statusOf(t, user.Config(), byLease...)
	if want := "pods/portforward in namespace " + ns; code != 1 || !strings.Contains(complaint, want) {
		t.Errorf("without the right: exit code %d, and %s does not say %q", code, complaint, want)
	}
}

// statusOf runs operator status.
func statusOf(t *testing.T, config *rest.Config, args ...string) (code int, out, complaint string) {
	t.Helper()
	var o, e bytes.Buffer
	streams := cmd.Streams{Out: &o, Err: &e, Env: []string{"KUBECONFIG=" + cluster.WriteKubeconfig(t, config)}}
	code = cmd.Run(t.Context(), append([]string{"status"}, args...), streams, handlers.Standard())
	return code, o.String(), e.String()
}

// podOnKubelet makes a Pod on a node whose kubelet forwards ports to this machine.
func podOnKubelet(t *testing.T, ns, name string, args ...string) {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, fmt.Sprintf("/portForward/%s/%s", ns, name)) {
			cluster.PortForward(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(kubelet.Close)
	at, err := url.Parse(kubelet.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	client := plane.Kubernetes().CoreV1()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.Hostname()}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
			Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if _, err := client.Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Nodes().Delete(t.Context(), ns, metav1.DeleteOptions{}) })
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: corev1.PodSpec{
			NodeName: ns, AutomountServiceAccountToken: new(bool), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "operator", Image: "operator", Args: args}},
		},
	}
	eventually(t, "a Pod", func() (bool, string) { // its service account may come later
		_, err := client.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), fmt.Sprint(err)
	})
	eventually(t, "a Pod that runs", func() (bool, string) {
		now, err := client.Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.PodRunning, fmt.Sprint(err)
	})
}

// TestTheProgramIsAPluginOfKubectl holds that kubectl finds the program by its name, and that its help names kubectl.
func TestTheProgramIsAPluginOfKubectl(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(plane.Program(t, "cmd/operator", false), filepath.Join(dir, "kubectl-handwerk")); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"version": "client-go", "status --help": "kubectl handwerk status [flags]"} {
		kubectl := exec.CommandContext(t.Context(), plane.Kubectl(t), append([]string{"handwerk"}, strings.Fields(args)...)...)
		kubectl.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := kubectl.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("kubectl handwerk %s: %v, and no %q in\n%s", args, err, want, out)
		}
	}
}
