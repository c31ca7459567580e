// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience bounds each wait. It is generous: a test that passes does not need it.
const patience = 2 * time.Minute

// plane is a control plane without a kubelet: what would run in Pods, the test runs itself.
type plane struct {
	namespace  string // of the release
	kubeconfig string
	config     *rest.Config
	dynamic    dynamic.Interface
	kubernetes kubernetes.Interface
}

// startPlane starts bin/controlplane. It ends with the test.
func startPlane(t *testing.T) *plane {
	t.Helper()
	program, err := filepath.Abs(repository + "/bin/controlplane")
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatalf("%v (run make controlplane)", err)
	}
	dir := filepath.Join(t.TempDir(), "plane")
	ready := startProcess(t, exec.Command(program, "start", "--dir", dir, "--without", "kwok,scheduler"))
	ready.await(t, "ready: ")
	p := &plane{kubeconfig: filepath.Join(dir, "kubeconfig")}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	p.config.QPS = -1
	if p.dynamic, err = dynamic.NewForConfig(p.config); err != nil {
		t.Fatal(err)
	}
	if p.kubernetes, err = kubernetes.NewForConfig(p.config); err != nil {
		t.Fatal(err)
	}
	return p
}

// resource is the objects of a resource in a namespace.
type resource struct {
	client dynamic.ResourceInterface
	name   string
}

// in returns the control plane for a release in another namespace.
func (p *plane) in(namespace string) *plane {
	out := *p
	out.namespace = namespace
	return &out
}

// of returns the objects of a resource in the namespace of the release, as in "jobs.v1.batch".
func (p *plane) of(name string) resource { return p.ofAll(name, p.namespace) }

// ofAll returns the objects of a resource in another namespace, or those that have none.
func (p *plane) ofAll(name, namespace string) resource {
	gvr, _ := schema.ParseResourceArg(name)
	if gvr == nil {
		plural, version, _ := strings.Cut(name, ".")
		gvr = &schema.GroupVersionResource{Version: version, Resource: plural}
	}
	return resource{p.dynamic.Resource(*gvr).Namespace(namespace), name}
}

// await watches until an object is as wanted. It is nil where there is none.
func (r resource) await(t *testing.T, name, what string, met func(*unstructured.Unstructured) bool) (last *unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		events, err := r.client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatalf("watching %s %s: %v", r.name, name, err)
		}
		if last, err = r.client.Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("reading %s %s: %v", r.name, name, err)
		} else if err != nil {
			last = nil
		}
		for !met(last) {
			event, open := <-events.ResultChan()
			if ctx.Err() != nil {
				t.Fatalf("%s %s is not seen %s:\n%v", r.name, name, what, last)
			}
			if !open {
				break
			}
			if last, _ = event.Object.(*unstructured.Unstructured); event.Type == "DELETED" {
				last = nil
			}
		}
		events.Stop()
		if met(last) {
			return last
		}
	}
}

func gone(o *unstructured.Unstructured) bool { return o == nil }

// process is a program that runs beside the test.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed when there is more text
}

// startProcess starts a program. It is asked to end when the test does, or when the test's process dies.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{}), changed: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.WaitDelay = p, p, attributes(), time.Second
	started := make(chan error)
	go func() {
		// The kernel asks the program to end when the thread that has started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState has it
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), p.said())
		}
	})
	return p
}

// Write takes what the program prints.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.text.Write(text)
}

// said is what the program has printed so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// await waits until the program has printed a text.
func (p *process) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if strings.Contains(p.said(), text) {
			return
		}
		select {
		case <-changed:
		case <-p.done:
			t.Fatalf("%s ended without saying %q", p.cmd.Path, text)
		case <-late:
			t.Fatalf("%s does not say %q", p.cmd.Path, text)
		}
	}
}

// wait waits for the end, and returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%s does not end", p.cmd.Path)
		return -1
	}
}

// stop asks the program to end, as the kubelet does, and kills it where it does not. It returns the exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Errorf("%s had to be killed", p.cmd.Path)
		<-p.done
	}
	return p.cmd.ProcessState.ExitCode()
}
