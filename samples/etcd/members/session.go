// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

// parameters are the parameters of the functions. In all texts, also those of the Pod, {member}
// stands for the member's name, {number} for its number, {cluster} for the object's name, and {namespace} for its
// namespace.
type parameters struct {
	// ClientURL and PeerURL are the URLs of a member for clients and for other members. The defaults are for a Pod
	// with its own hostname in a headless Service of the cluster's name.
	ClientURL string `json:"clientURL"`
	PeerURL   string `json:"peerURL"`
	// Pod is the Pod of a member. A change of the image of its first container, which is etcd, restarts the members that
	// there are, one by one; any other change is for members to come. In it, {clientURL} and {peerURL} are the member's URLs, {initialCluster} is the
	// list of members with their peer URLs, and {initialClusterState} is new or existing, as for etcd's flags of
	// these names.
	Pod map[string]any `json:"pod"`
}

// The default URLs.
const (
	defaultClientURL = "http://{member}.{cluster}.{namespace}.svc:2379"
	defaultPeerURL   = "http://{member}.{cluster}.{namespace}.svc:2380"
)

const podResource = "pods.v1"

// cluster has the fields of an EtcdCluster that the functions need.
type cluster struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
	Status struct {
		Members []memberStatus `json:"members"`
		// Next is the number of the next member. Numbers are not used again, so that a new member cannot be
		// mistaken for an old one.
		Next int `json:"next"`
	} `json:"status"`
}

// memberStatus is a member in the status.
type memberStatus struct {
	Name string `json:"name"`
	// ID is the id that etcdctl shows; empty until it is known.
	ID string `json:"id,omitempty"`
	// Learner: it has no vote yet. Alive: its Pod exists, with its data. Healthy: it answers, and has a leader.
	Learner bool `json:"learner"`
	Alive   bool `json:"alive"`
	Healthy bool `json:"healthy"`
	// Outdated: its Pod has another image than the wanted one. Restarting: its Pod has a new image, and no container
	// of this image runs yet.
	Outdated   bool `json:"outdated"`
	Restarting bool `json:"restarting"`
}

// session is one run of one of the functions.
type session struct {
	*dsl.Request
	cluster
	params parameters
	// pods are the cluster's Pods, by name.
	pods map[string]*corev1.Pod
	// members are the members that a quorum reports, in the order of their numbers; nil without a quorum. Answers
	// are the members' own statuses.
	members []etcd.Member
	answers map[string]answer
	leader  etcd.ID
}

// answer is a member's status, or the error of the request.
type answer struct {
	etcd.Status
	err error
}

// healthy reports whether a member answers, has a leader, and has no alarm.
func (a answer) healthy() bool { return a.err == nil && a.Leader != 0 && len(a.Errors) == 0 }

// function makes a function the code of a handler.
func function(step func(context.Context, *session) error) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		s := &session{Request: r, params: parameters{ClientURL: defaultClientURL, PeerURL: defaultPeerURL}, pods: map[string]*corev1.Pod{}}
		if err := r.Params.Into(&s.params); err != nil {
			return dsl.Permanent(err)
		}
		object, err := dsl.As[cluster](r.Object)
		if err != nil {
			return err
		}
		s.cluster = *object
		pods, err := dsl.AsList[corev1.Pod](r.Children.List(podResource))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			s.pods[pod.Name] = pod
		}
		return step(ctx, s)
	}
}

// look asks all members for their status, and one of them for the list of members, and writes both to the status.
func (s *session) look(ctx context.Context) error {
	s.members, s.leader, s.answers = nil, 0, map[string]answer{}
	s.ask(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.again()
	var why error
	for _, name := range slices.Sorted(maps.Keys(s.answers)) {
		if a := s.answers[name]; !a.healthy() || s.members != nil {
			continue
		}
		s.members, why = etcd.Members(ctx, s.clientURL(name))
	}
	if s.members == nil {
		if why != nil {
			s.Log.V(1).Info("no quorum of etcd answers", "error", why.Error())
		}
		s.note(s.Status.Members)
		return nil
	}
	return s.write()
}

// again makes the machine look again; soon if a member is not healthy, because no event reports a member's health.
func (s *session) again() {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if a := s.answers[name]; !a.healthy() || a.Learner || restarting(s.pods[name]) {
			s.RunAgain(soon)
		}
	}
	s.RunAgain(later)
}

// ask asks the members that are alive for their status, all at once.
func (s *session) ask(ctx context.Context) {
	var asking sync.WaitGroup
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.pods)), func(name string) bool { return !s.alive(name) })
	answers := make([]answer, len(names))
	for i, name := range names {
		asking.Go(func() { answers[i].Status, answers[i].err = etcd.StatusOf(ctx, s.clientURL(name)) })
	}
	asking.Wait()
	for i, name := range names {
		s.answers[name] = answers[i]
	}
}

// write writes the members that a quorum reports to the status.
func (s *session) write() error {
	numbers, found := map[etcd.ID]int{}, []memberStatus{}
	for _, m := range s.members {
		name, err := s.nameOf(m)
		if err != nil {
			return err
		}
		numbers[m.ID] = s.number(name)
		found = append(found, memberStatus{Name: name, ID: m.ID.String(), Learner: m.Learner})
	}
	slices.SortFunc(s.members, func(a, b etcd.Member) int { return cmp.Compare(numbers[a.ID], numbers[b.ID]) })
	slices.SortFunc(found, func(a, b memberStatus) int { return cmp.Compare(s.number(a.Name), s.number(b.Name)) })
	for _, m := range found {
		if a := s.answers[m.Name]; a.healthy() && !m.Learner {
			s.leader = a.Leader
		}
	}
	s.note(found)
	return nil
}

// note writes members with their current state to the status.
func (s *session) note(members []memberStatus) {
	members = slices.Clone(members)
	for i := range members {
		m := &members[i]
		m.Alive, m.Healthy = s.alive(m.Name), s.answers[m.Name].healthy()
		m.Outdated, m.Restarting = s.outdated(m.Name), m.Alive && restarting(s.pods[m.Name])
	}
	s.Status.Members = members
	s.Patch.SetStatus("members", members)
}

// alive reports whether the Pod of a member exists, with its data.
func (s *session) alive(name string) bool {
	pod := s.pods[name]
	return pod != nil && !dead(pod)
}

// voter returns a member, other than the given one, that can be asked for a change; empty if there is none. It
// prefers members that are not the leader.
func (s *session) voter(but string) (found string) {
	for _, name := range slices.Sorted(maps.Keys(s.answers)) {
		a := s.answers[name]
		if name == but || !a.healthy() || a.Learner {
			continue
		}
		if found = name; a.ID != s.leader {
			return name
		}
	}
	return found
}

// next returns the number of the member to add. If an earlier run has already added it as a learner, it returns the
// learner, too.
func (s *session) next(members []etcd.Member) (number int, learner *etcd.Member) {
	for number = s.Status.Next; ; number++ {
		name := s.numbered(number)
		i := slices.IndexFunc(members, func(m etcd.Member) bool { return slices.Contains(m.PeerURLs, s.peerURL(name)) })
		switch {
		case i >= 0 && members[i].Learner:
			return number, &members[i]
		case i < 0 && s.pods[name] == nil:
			return number, nil
		}
	}
}

// start makes the Pod of a member that joins others, or of the first member.
func (s *session) start(ctx context.Context, name string, members []etcd.Member) error {
	if s.pods[name] != nil {
		return nil // an earlier run has made it
	}
	if s.params.Pod == nil {
		return dsl.Permanent(fmt.Errorf("starting member %s: the parameter pod must say what its Pod is", name))
	}
	state, all := "new", []string{name + "=" + s.peerURL(name)}
	if members != nil {
		state, all = "existing", nil
	}
	for _, m := range members {
		of, err := s.nameOf(m)
		if err != nil {
			return err
		}
		all = append(all, of+"="+s.peerURL(of))
	}
	words := strings.NewReplacer("{initialCluster}", strings.Join(all, ","), "{initialClusterState}", state,
		"{clientURL}", s.clientURL(name), "{peerURL}", s.peerURL(name))
	pod := fillIn(s.params.Pod, func(text string) string { return s.words(name).Replace(words.Replace(text)) })
	applied, err := dsl.As[corev1.Pod](s.Children.Apply(ctx, pod))
	if err != nil {
		return fmt.Errorf("starting member %s: %w", name, err)
	}
	s.pods[name] = applied
	return nil
}

// stop deletes the Pod of a former member.
func (s *session) stop(ctx context.Context, name string) error {
	if err := s.Children.Delete(ctx, podResource, name); err != nil {
		return fmt.Errorf("stopping %s, which is no member any more: %w", name, err)
	}
	delete(s.pods, name)
	return nil
}

// numbered returns the name of the member with a number. Number returns the number of a name, or -1 for a foreign
// name.
func (s *session) numbered(number int) string { return s.Name + "-" + strconv.Itoa(number) }

func (s *session) number(name string) int {
	digits, ours := strings.CutPrefix(name, s.Name+"-")
	n, err := strconv.Atoi(digits)
	if !ours || err != nil {
		return -1
	}
	return n
}

func (s *session) clientURL(member string) string {
	return s.words(member).Replace(s.params.ClientURL)
}
func (s *session) peerURL(member string) string { return s.words(member).Replace(s.params.PeerURL) }

// words replaces the placeholders of a member.
func (s *session) words(member string) *strings.Replacer {
	return strings.NewReplacer("{member}", member, "{number}", strconv.Itoa(s.number(member)), "{cluster}", s.Name, "{namespace}", s.Namespace)
}

// nameOf returns the name of a member by its peer URL, because etcd has no name for it before it has started. A
// member that somebody else has added is an error.
func (s *session) nameOf(m etcd.Member) (string, error) {
	template := strings.NewReplacer("{member}", s.Name+"-{number}", "{cluster}", s.Name, "{namespace}", s.Namespace).Replace(s.params.PeerURL)
	before, after, _ := strings.Cut(template, "{number}")
	for _, url := range m.PeerURLs {
		number := strings.TrimSuffix(strings.TrimPrefix(url, before), after)
		if name := s.Name + "-" + number; s.number(name) >= 0 && s.peerURL(name) == url {
			return name, nil
		}
	}
	return "", fmt.Errorf("reading members of %s: %s (peer URLs %s) was not added by this operator: remove it by hand",
		s.Name, cmp.Or(m.Name, m.ID.String()), strings.Join(m.PeerURLs, ", "))
}

// fillIn returns a copy of a plain value with all texts in it replaced.
func fillIn[T any](value T, replaced func(string) string) T {
	var out any = value
	switch v := out.(type) {
	case string:
		out = replaced(v)
	case map[string]any:
		filled := make(map[string]any, len(v))
		for key, inner := range v {
			filled[key] = fillIn(inner, replaced)
		}
		out = filled
	case []any:
		filled := make([]any, len(v))
		for i, inner := range v {
			filled[i] = fillIn(inner, replaced)
		}
		out = filled
	}
	return out.(T)
}
