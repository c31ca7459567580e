// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/handlers"
)

// fakeMember is a member of a fakeEtcd.
type fakeMember struct {
	id            int
	learner, down bool
}

// fakeEtcd answers for all members of a cluster, each under its name, as etcd's gateway does.
type fakeEtcd struct {
	*httptest.Server
	mu      sync.Mutex
	members map[string]*fakeMember
	leader  int
	// refuses is what changes are answered with, empty for none.
	refuses string
	changes []string
}

func newFakeEtcd(t *testing.T, members map[string]*fakeMember) *fakeEtcd {
	t.Helper()
	f := &fakeEtcd{members: members, leader: 100}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{member}/v3/maintenance/status", f.status)
	mux.HandleFunc("POST /{member}/v3/cluster/member/{change}", f.member)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// quorum reports whether more than half of those with a vote are up.
func (f *fakeEtcd) quorum() bool {
	up, all := 0, 0
	for _, m := range f.members {
		if !m.learner {
			all++
			if !m.down {
				up++
			}
		}
	}
	return up > all/2
}

func (f *fakeEtcd) status(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[r.PathValue("member")]
	if m == nil || m.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	leader := f.leader
	if !f.quorum() {
		leader = 0
	}
	fmt.Fprintf(w, `{"header":{"member_id":"%d"},"leader":"%d","isLearner":%t}`, m.id, leader, m.learner)
}

func (f *fakeEtcd) member(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var asked struct {
		ID        string
		PeerURLs  []string
		IsLearner bool
	}
	change := r.PathValue("change")
	by := f.members[r.PathValue("member")]
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || by == nil || by.down || !f.quorum() || by.learner {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":14,"message":"etcdserver: request timed out"}`)
		return
	}
	if f.refuses != "" && change != "list" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, f.refuses)
		return
	}
	of := func(name string, m *fakeMember) string {
		return fmt.Sprintf(`{"ID":"%d","peerURLs":["http://%s.peer"],"isLearner":%t}`, m.id, name, m.learner)
	}
	if change == "list" {
		var all []string
		for name, m := range f.members {
			all = append(all, of(name, m))
		}
		fmt.Fprintf(w, `{"members":[%s]}`, strings.Join(all, ","))
		return
	}
	if change == "add" {
		name := strings.TrimSuffix(strings.TrimPrefix(asked.PeerURLs[0], "http://"), ".peer")
		f.members[name] = &fakeMember{id: 200 + len(f.members), learner: asked.IsLearner, down: true}
		f.changes = append(f.changes, "add "+name)
		fmt.Fprintf(w, `{"member":%s}`, of(name, f.members[name]))
		return
	}
	for name, m := range f.members {
		if fmt.Sprint(m.id) != asked.ID {
			continue
		}
		if m == by && change == "remove" { // which may end before it has answered
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		f.changes = append(f.changes, change+" "+name)
		if m.learner = false; change == "remove" {
			delete(f.members, name)
		}
	}
	fmt.Fprint(w, "{}")
}

// fakePods are the Pods of a cluster.
type fakePods struct {
	dsl.Children
	pods map[string]map[string]any
	did  []string
}

func (f *fakePods) List(string) (out []*unstructured.Unstructured, _ error) {
	for _, name := range slices.Sorted(maps.Keys(f.pods)) {
		out = append(out, &unstructured.Unstructured{Object: f.pods[name]})
	}
	return out, nil
}

func (f *fakePods) Apply(_ context.Context, desired any, _ ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: desired.(map[string]any)}
	f.pods[o.GetName()] = o.Object
	f.did = append(f.did, "make "+o.GetName())
	return o, nil
}

func (f *fakePods) Delete(_ context.Context, _, name string) error {
	delete(f.pods, name)
	f.did = append(f.did, "delete "+name)
	return nil
}

// fakeClient patches Pods as the API server does.
type fakeClient struct {
	dsl.Client
	pods *fakePods
}

func (f fakeClient) MergePatch(_ context.Context, _, _, name string, patch map[string]any, _ ...string) (*unstructured.Unstructured, error) {
	var pod corev1.Pod
	for _, from := range []any{f.pods.pods[name], patch} {
		text, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(text, &pod)
		}
		if err != nil {
			return nil, err
		}
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	f.pods.pods[name] = out
	f.pods.did = append(f.pods.did, fmt.Sprintf("%s gets %s, after %s", name, pod.Spec.Containers[0].Image, pod.Annotations[containerBefore]))
	return &unstructured.Unstructured{Object: out}, err
}

// registry has the stock actions and the functions.
func registry() *actions.Registry {
	r := handlers.Standard()
	Functions(r)
	return r
}

// run is a run of a function.
type run struct {
	etcd *fakeEtcd
	pods *fakePods
	// size is how many members there should be, next the number of the next one, known those in the status.
	size, next int64
	known      []any
	// image is the wanted image.
	image string
	// again is when the last run is to be followed by another one.
	again *time.Duration
}

// run runs a function, and returns what it says of members in the status, each as in c-1 learner alive healthy.
func (e *run) run(t *testing.T, function string) (members []string, status map[string]any, err error) {
	t.Helper()
	fn, found := registry().LookupFunction(function)
	if !found {
		t.Fatalf("there is no function %s", function)
	}
	params := dsl.Params{
		"clientURL": e.etcd.URL + "/{member}", "peerURL": "http://{member}.peer",
		"pod": map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "{member}"},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "etcd", "image": e.image, "args": []any{"{initialClusterState}", "{initialCluster}", "{peerURL}"}}}},
		},
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "c", "namespace": "ns"}, "spec": map[string]any{"size": e.size},
		"status": map[string]any{"next": e.next, "members": e.known},
	}}
	request := &dsl.Request{Subject: dsl.Subject{Object: object, Log: logr.Discard()}, Patch: dsl.NewPatch(), Children: e.pods, Client: fakeClient{pods: e.pods}, Params: params}
	err = fn.Func(t.Context(), request)
	e.again = request.Again
	list, _ := request.Patch.Status["members"].([]any)
	for _, one := range list {
		m := one.(map[string]any)
		text := fmt.Sprint(m["name"])
		for _, flag := range []string{"learner", "alive", "healthy", "outdated", "restarting"} {
			if m[flag] == true {
				text += " " + flag
			}
		}
		members = append(members, text)
	}
	return members, request.Patch.Status, err
}

// up are members with a vote that work, with their Pods.
func up(t *testing.T, numbers ...int) *run {
	t.Helper()
	members, pods := map[string]*fakeMember{}, &fakePods{pods: map[string]map[string]any{}}
	for _, n := range numbers {
		name := fmt.Sprintf("c-%d", n)
		members[name] = &fakeMember{id: 100 + n}
		pods.pods[name] = map[string]any{"metadata": map[string]any{"name": name}}
	}
	e := &run{etcd: newFakeEtcd(t, members), pods: pods, size: int64(len(numbers)), next: int64(len(numbers))}
	e.etcd.leader = 100 + numbers[0]
	return e
}

// with changes a run before it runs.
func (e *run) with(change func(*run)) *run {
	change(e)
	return e
}

// joins adds a learner.
func (e *run) joins(name string, down bool) {
	e.etcd.members[name] = &fakeMember{id: 300, learner: true, down: down}
}

// pod adds a Pod.
func (e *run) pod(name, phase string) {
	e.pods.pods[name] = map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": phase}}
}

// runs gives members Pods of an image, with the container that the kubelet reports, and with the annotation of the last change.
func (e *run) runs(image, container, before string, names ...string) {
	for _, name := range names {
		pod := map[string]any{
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "etcd", "image": image}}},
			"status":   map[string]any{"containerStatuses": []any{map[string]any{"name": "etcd", "containerID": container}}},
		}
		if before != "" {
			pod["metadata"].(map[string]any)["annotations"] = map[string]any{containerBefore: before}
		}
		e.pods.pods[name] = pod
	}
}

// unseen has the kubelet report an older generation of a Pod.
func (e *run) unseen(name string) {
	e.pods.pods[name]["metadata"].(map[string]any)["generation"] = int64(2)
	e.pods.pods[name]["status"].(map[string]any)["observedGeneration"] = int64(1)
}
