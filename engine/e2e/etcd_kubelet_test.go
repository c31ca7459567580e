// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

// etcdKubelet runs a real etcd process for each Pod of a namespace that no scheduler knows: with the Pod's flags, but for
// where it listens and has its data. A container that ends is run again with its data, as long as its Pod is there.
type etcdKubelet struct {
	ns, program, dir string
	network          *etcdNetwork
	t                *testing.T
	all              sync.WaitGroup

	mu   sync.Mutex
	pods map[types.UID]*etcdPod
	// changes are the changes of images, in order; absent is an image that cannot be pulled.
	changes []etcdChange
	absent  string
	// changed is called once, at the next change of an image.
	changed func()
	// well are the Pods whose members answer and know a leader; fewest is how few they have been since it was set.
	well   map[types.UID]bool
	fewest int
}

// etcdChange is a change of the image of a member's Pod.
type etcdChange struct {
	pod, image string
	// led: the member was the leader when it got the image.
	led bool
}

// etcdPod is a Pod that the kubelet runs.
type etcdPod struct {
	*corev1.Pod
	dir string
	// stop ends its process; ended is closed when it has.
	stop  context.CancelFunc
	ended chan struct{}
	// crash ends the process that runs now; floor is held while one does.
	crash context.CancelFunc
	floor sync.Mutex
	// image is that of the Pod now; runs are how many containers have been started.
	image string
	runs  int
}

// newEtcdKubelet runs a kubelet until the test's end.
func newEtcdKubelet(t *testing.T, ns string, network *etcdNetwork) *etcdKubelet {
	t.Helper()
	program := os.Getenv(cluster.ControlPlaneVariable)
	if program == "" {
		program = "../../bin/controlplane"
	}
	program, err := filepath.Abs(program)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Skipf("there is no etcd: %v", err)
	}
	k := &etcdKubelet{ns: ns, program: program, dir: t.TempDir(), network: network, t: t, pods: map[types.UID]*etcdPod{}, well: map[types.UID]bool{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactoryWithOptions(plane.Kubernetes(), 0, informers.WithNamespace(ns))
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.begin(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.change(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			if p := k.of(o.(*corev1.Pod).UID); p != nil {
				p.stop()
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		k.all.Wait()
	})
	return k
}

func (k *etcdKubelet) of(uid types.UID) *etcdPod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[uid]
}

// begin begins to run the Pod of a member.
func (k *etcdKubelet) begin(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.SchedulerName != "none" {
		return // it is no member
	}
	ctx, stop := context.WithCancel(ctx)
	p := &etcdPod{
		Pod: pod, dir: filepath.Join(k.dir, string(pod.UID)),
		stop: stop, ended: make(chan struct{}), image: pod.Spec.Containers[0].Image,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[pod.UID] = p
	k.all.Go(func() {
		defer close(p.ended)
		runtime.LockOSThread() // the process is killed when the thread ends that has begun it
		defer runtime.UnlockOSThread()
		for ctx.Err() == nil {
			p.floor.Lock()
			var err error
			if k.pulls(p) {
				err = k.run(ctx, p)
			}
			p.floor.Unlock()
			if err != nil && ctx.Err() == nil {
				k.t.Errorf("running Pod %s: %v", p.Name, err)
			}
			select {
			case <-time.After(500 * time.Millisecond): // a kubelet waits, too
			case <-ctx.Done():
			}
		}
	})
}

// run runs the Pod's process until it ends.
func (k *etcdKubelet) run(ctx context.Context, p *etcdPod) error {
	client, peer, err := freeAddresses()
	if err != nil {
		return err
	}
	ctx, crash := context.WithCancel(ctx)
	defer crash()
	k.mu.Lock()
	p.crash = crash
	k.mu.Unlock()
	out, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := cluster.Command(ctx, k.program, "etcd")
	hosts := map[string]string{}
	for _, arg := range p.Spec.Containers[0].Args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--advertise-client-urls":
			hosts[strings.TrimPrefix(value, "http://")] = client
		case "--initial-advertise-peer-urls":
			hosts[strings.TrimPrefix(value, "http://")] = peer
		case "--listen-client-urls":
			arg = name + "=http://" + client
		case "--listen-peer-urls":
			arg = name + "=http://" + peer
		case "--data-dir":
			arg = name + "=" + p.dir
		}
		cmd.Args = append(cmd.Args, arg)
	}
	// Elections come late on a busy machine, and nothing outlives the test.
	cmd.Args = append(cmd.Args, "--unsafe-no-fsync", "--heartbeat-interval=100", "--election-timeout=1500", "--log-level=warn")
	cmd.Env = append(os.Environ(), k.network.environment()...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	k.network.attach(p.Name, "http://"+client, hosts)
	defer k.network.detach(p.Name, hosts)
	running, ended := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() { k.probe(running, p, "http://"+client) })
	_ = cmd.Wait() // a member that was removed ends by itself
	ended()
	probing.Wait()
	k.answers(p, false)
	return nil
}

// pulls reports whether the image of a Pod is there.
func (k *etcdKubelet) pulls(p *etcdPod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.image != k.absent
}

// lacks says which image cannot be pulled; empty for none.
func (k *etcdKubelet) lacks(image string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.absent = image
}

// change ends the process of a Pod whose image has changed, so that it is run again in another container with its data.
func (k *etcdKubelet) change(pod *corev1.Pod) {
	k.mu.Lock()
	p := k.pods[pod.UID]
	if p == nil || p.image == pod.Spec.Containers[0].Image {
		k.mu.Unlock()
		return
	}
	p.image = pod.Spec.Containers[0].Image
	crash, changed := p.crash, k.changed
	k.changed = nil
	k.mu.Unlock()
	status, err := etcd.StatusOf(k.t.Context(), k.network.members()[p.Name])
	made := etcdChange{pod: p.Name, image: p.image, led: err == nil && status.ID == status.Leader}
	k.mu.Lock()
	k.changes = append(k.changes, made)
	k.mu.Unlock()
	if changed != nil {
		changed()
	}
	if crash != nil {
		crash()
	}
}

// crashAtChange has something done at the next change of an image, before its container ends. The channel is closed when it is done.
func (k *etcdKubelet) crashAtChange(do func()) <-chan struct{} {
	done := make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = func() {
		do()
		close(done)
	}
	return done
}

// answers notes whether the member of a Pod answers, and knows a leader.
func (k *etcdKubelet) answers(p *etcdPod, well bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.well, p.UID); well {
		k.well[p.UID] = true
	}
	k.fewest = min(k.fewest, len(k.well))
}

// restarted returns the changes of images, and how few members have been well at a time, since it was called last.
func (k *etcdKubelet) restarted() (changes []etcdChange, fewest int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changes, fewest = k.changes, k.fewest
	k.changes, k.fewest = nil, len(k.well)
	return changes, fewest
}

// probe says that the Pod runs, and that it is ready when its member answers.
func (k *etcdKubelet) probe(ctx context.Context, p *etcdPod, address string) {
	k.mu.Lock()
	p.runs++
	runs, image := p.runs, p.image
	k.mu.Unlock()
	// A runtime may have another name of the image.
	k.report(ctx, p, fmt.Sprintf(`{"phase":"Running","containerStatuses":[{"name":%q,"image":"docker.io/library/%s","imageID":"sha256:%x",`+
		`"containerID":"fake://%s-%d","restartCount":%d,"ready":false,"state":{"running":{}}}]}`,
		p.Spec.Containers[0].Name, image, image, p.UID, runs, runs-1))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if status, err := etcd.StatusOf(ctx, address); err == nil && status.Leader != 0 {
			k.answers(p, true)
			k.report(ctx, p, `{"conditions":[{"type":"Ready","status":"True"}]}`)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// report writes the Pod's status.
func (k *etcdKubelet) report(ctx context.Context, p *etcdPod, status string) {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":%s}`, p.UID, status)
	_, err := plane.Kubernetes().CoreV1().Pods(k.ns).Patch(ctx, p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.t.Errorf("reporting on Pod %s: %v", p.Name, err)
	}
}

// hold kills the process of a Pod, whose data stays, and keeps it from being run again until release is called.
func (k *etcdKubelet) hold(t *testing.T, name string) (release func()) {
	t.Helper()
	pod, err := plane.Kubernetes().CoreV1().Pods(k.ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := k.of(pod.UID)
	k.mu.Lock()
	crash := p.crash
	k.mu.Unlock()
	crash() // with SIGKILL
	p.floor.Lock()
	return p.floor.Unlock
}

// evict kills the processes of Pods, and their data is gone: as when their nodes have no room any more.
func (k *etcdKubelet) evict(t *testing.T, names ...string) {
	t.Helper()
	var evicted []*etcdPod
	for _, name := range names {
		pod, err := plane.Kubernetes().CoreV1().Pods(k.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := k.of(pod.UID)
		if p == nil {
			t.Fatalf("Pod %s is not run", name)
		}
		evicted = append(evicted, p)
		p.stop() // with SIGKILL
		<-p.ended
		if err := os.RemoveAll(p.dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range evicted {
		k.report(t.Context(), p, `{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`)
	}
}

// logs returns the ends of what the processes have said.
func (k *etcdKubelet) logs() string {
	var out strings.Builder
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		text, err := os.ReadFile(p.dir + ".log")
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&out, "%s:\n  %s\n", p.Name, strings.Join(lines[max(0, len(lines)-10):], "\n  "))
	}
	return out.String()
}

// freeAddresses returns two addresses that are free.
func freeAddresses() (client, peer string, err error) {
	var found [2]string
	for i := range found {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer l.Close()
		found[i] = l.Addr().String()
	}
	return found[0], found[1], nil
}
