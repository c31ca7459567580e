// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/dsl"
)

// inBackground runs a command line until the test ends, and returns the path of the kubeconfig that it prints.
func inBackground(t *testing.T, args ...string) string {
	t.Helper()
	said, out := io.Pipe()
	b := newBench(t)
	b.Out, b.extra = out, []func(*dsl.Operator){addCensus("")}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = out.Close() }()
		if code := b.execute(ctx, args); code != exitOK {
			t.Errorf("%v: exit %d: %s", args, code, b.err.String())
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, path, found := strings.Cut(lines.Text(), "export KUBECONFIG="); found {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return path
		}
	}
	t.Fatalf("%v prints no kubeconfig", args)
	return ""
}

// control runs a command line against the cluster of a kubeconfig, and returns its exit code and what it says.
func control(t *testing.T, kubeconfig, line string) (code int, said string) {
	t.Helper()
	b := newBench(t, "KUBECONFIG="+kubeconfig)
	code = b.execute(t.Context(), strings.Fields(line))
	return code, b.out.String() + b.err.String()
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// shopOfOnePod returns a Deployment of one Pod.
func shopOfOnePod() *appsv1.Deployment {
	labels := map[string]string{"app": "shop"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: "nginx"}}},
		},
	}}
}

// TestAClusterIsChangedWhileItRuns holds a Deployment, which then is released, lets its Pods fail, and requests.
func TestAClusterIsChangedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"sandbox", "sandbox --clock stopped", "play"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			kubeconfig := inBackground(t, strings.Fields(line)...)
			run := func(line, want string) {
				t.Helper()
				if code, said := control(t, kubeconfig, "sandbox "+line); code != exitOK || said != want+"\n" {
					t.Fatalf("%s: exit %d: %s, want %s", line, code, said, want)
				}
			}
			deployments := clientOf(t, kubeconfig).AppsV1().Deployments("default")
			run("hold deployments/shop", "deployments/shop is held")
			watch, err := deployments.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			if _, err := deployments.Create(t.Context(), shopOfOnePod(), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			run("fail patch deploy/shop --with 409 --times 3", "requests to patch deploy/shop fail with 409, 3 times")
			for range 3 {
				_, err := deployments.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
				if !apierrors.IsConflict(err) {
					t.Errorf("a patch: %v", err)
				}
			}
			d, err := deployments.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			if err != nil || d.Status.ObservedGeneration != 0 {
				t.Errorf("the fourth patch: %v, observed: %d", err, d.Status.ObservedGeneration)
			}
			run("release deployments/shop", "deployments/shop is released")
			for event := range watch.ResultChan() {
				if event.Object.(*appsv1.Deployment).Status.ReadyReplicas == 1 {
					break
				}
			}
			run("fail deployments/shop --reason Unready", "deployments/shop fails with Unready")
			for event := range watch.ResultChan() {
				if event.Object.(*appsv1.Deployment).Status.ReadyReplicas == 0 {
					break
				}
			}
			run("release --all", "all workloads and requests are released")
			for event := range watch.ResultChan() {
				if event.Object.(*appsv1.Deployment).Status.ReadyReplicas == 1 {
					break
				}
			}
		})
	}
}

// TestTheShellOfThePageOfTheSandbox runs the commands of the section about time of docs/sandbox.md.
func TestTheShellOfThePageOfTheSandbox(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(pageAt(t, "../docs/sandbox.md"), "## Time, faults and holds")
	shell := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(section)
	if shell == nil {
		t.Fatal("the page has no section about time with a shell")
	}
	kubeconfig := filepath.Join(t.TempDir(), "sandbox.yaml")
	said, ran := "", 0
	for line := range strings.Lines(shell[1]) {
		typed, is := strings.CutPrefix(strings.TrimSpace(line), "$ operator ")
		switch command, background := strings.CutSuffix(typed, " &"); {
		case is && background:
			inBackground(t, strings.Fields(strings.ReplaceAll(command, "sandbox.yaml", kubeconfig))...)
		case is:
			command, _, _ := strings.Cut(typed, " #")
			var code int
			if code, said = control(t, kubeconfig, strings.ReplaceAll(command, "'", "")); code != exitOK {
				t.Fatalf("%s: exit %d: %s", command, code, said)
			}
			ran++
		case !strings.HasPrefix(line, "$"):
			time := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
			if got, want := time.ReplaceAllString(said, "TIME"), time.ReplaceAllString(line, "TIME"); got != want {
				t.Errorf("it says %q, the page %q", got, want)
			}
		}
	}
	if ran < 4 {
		t.Errorf("%d commands were run", ran)
	}
}

func TestControlsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	real := inBackground(t, "sandbox")
	other := httptest.NewServer(nil)
	t.Cleanup(other.Close)
	stranger := writeFile(t, "kubeconfig", kubeconfigOf(other.URL))
	closed := writeFile(t, "kubeconfig", kubeconfigOf("http://127.0.0.1:1"))
	const cure = "; operator sandbox starts one, and says its kubeconfig\n"
	for name, c := range map[string]struct {
		kubeconfig, line string
		code             int
		says             string
	}{
		"nothing runs there":        {closed, "hold pods/a", exitFailed, "error: no sandbox runs at http://127.0.0.1:1" + cure},
		"another API server":        {stranger, "hold pods/a", exitFailed, "error: the API server at " + other.URL + " is no sandbox" + cure},
		"no kubeconfig":             {filepath.Join(t.TempDir(), "none"), "hold pods/a", exitFailed, "error: finding the sandbox: finding the API server: nothing in "},
		"the clock is real":         {real, "advance 1h", exitFailed, "error: advancing the clock: the clock is that of the machine; start a sandbox with a stopped one, as operator sandbox --clock stopped does\n"},
		"no duration":               {real, "advance soon", exitUsage, `error: want a duration as in 1h30m, found "soon"` + "\n"},
		"no delay":                  {real, "delay pods/a soon", exitUsage, `error: want a duration as in 20s, found "soon"` + "\n"},
		"nothing alive":             {real, "hold secrets/a", exitFailed, "error: holding secrets/default/a: secrets do not come alive; these do: "},
		"a flag of requests":        {real, "fail pods/a --with 409", exitUsage, "error: --with is for requests, as in 'fail patch pods'\n"},
		"a flag of workloads":       {real, "fail patch pods --reason Unready", exitUsage, "error: --reason is for a workload, as in 'fail deployments/web'\n"},
		"nothing to release":        {real, "release", exitUsage, "error: want either a workload, requests or --all\n"},
		"released twice":            {real, "release pods/a", exitFailed, "error: releasing pods/default/a: nothing is held, failed or delayed\n"},
		"requests that do not fail": {real, "release patch pods", exitFailed, "error: no such requests fail\n"},
		"a command that is not":     {real, "advnce 1h", exitUsage, `error: unknown command "advnce" (did you mean advance?)` + "\n"},
		"another clock":             {real, "--clock slow", exitUsage, `error: invalid argument "slow" for "--clock" flag: want real or stopped` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, said := control(t, c.kubeconfig, "sandbox "+c.line)
			if code != c.code || !strings.HasPrefix(said, c.says) {
				t.Errorf("exit %d: %s, want %d: %s", code, said, c.code, c.says)
			}
		})
	}
}
