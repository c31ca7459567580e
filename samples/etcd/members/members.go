// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package members has the functions of samples/etcd. They let etcd clusters grow and shrink member by member.
package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

// The times until the next look: while a change is in progress, and when all members are healthy.
const (
	soon  = time.Second
	later = 10 * time.Second
)

// look writes the members of an etcd cluster and their health to status.members. It deletes Pods that belong to
// no member.
func look(ctx context.Context, s *session) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	return s.tidy(ctx)
}

// create makes the Pod of the first member of a new cluster. It deletes Pods of an earlier cluster.
func create(ctx context.Context, s *session) error {
	name := s.numbered(s.Status.Next)
	for other := range s.pods {
		if other != name {
			if err := s.stop(ctx, other); err != nil {
				return err
			}
		}
	}
	if err := s.start(ctx, name, nil); err != nil {
		return err
	}
	s.note([]memberStatus{{Name: name}})
	s.Patch.SetStatus("next", s.Status.Next+1)
	return nil
}

// add adds a member as a learner, and makes its Pod, if the cluster has too few members and all are healthy. No
// other function makes a Pod that joins a cluster. A new Pod for a member with a vote would have lost the data that
// the member has acknowledged, so a Pod is made only if etcd says that the member is a learner.
func add(ctx context.Context, s *session) error {
	by, err := s.ready(ctx)
	if err != nil || by == "" {
		return err
	}
	members := s.members
	next, learner := s.next(members)
	name := s.numbered(next)
	if learner == nil {
		if len(members) >= s.Spec.Size || slices.ContainsFunc(members, func(m etcd.Member) bool { return m.Learner }) {
			return nil
		}
		added, err := etcd.AddLearner(ctx, s.clientURL(by), s.peerURL(name))
		if err != nil {
			return notYet(fmt.Errorf("adding member %s to %s: %w", name, s.Name, err))
		}
		s.Log.Info("added an etcd member", "member", name, "id", added.ID.String())
		members = append(members, added)
	}
	if err := s.start(ctx, name, members); err != nil {
		return err
	}
	s.Patch.SetStatus("next", next+1)
	return s.look(ctx)
}

// promote promotes a learner that has caught up.
func promote(ctx context.Context, s *session) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	by := s.voter("")
	for _, m := range s.members {
		name, err := s.nameOf(m)
		if err != nil {
			return err
		}
		if !m.Learner || !s.answers[name].healthy() || by == "" {
			continue // the machine decides what to do then
		}
		if err := etcd.Promote(ctx, s.clientURL(by), m.ID); err != nil {
			return notYet(fmt.Errorf("promoting member %s of %s: %w", name, s.Name, err))
		}
		s.Log.Info("promoted an etcd member", "member", name, "id", m.ID.String())
		return s.look(ctx)
	}
	return nil
}

// remove removes a member if the cluster has too many and all are healthy. It prefers a learner, and otherwise
// the youngest member that is not the leader. The Pod is deleted afterwards.
func remove(ctx context.Context, s *session) error {
	by, err := s.ready(ctx)
	if err != nil || by == "" {
		return err
	}
	victim := -1
	if len(s.members) > s.Spec.Size {
		victim = slices.IndexFunc(s.members, func(m etcd.Member) bool { return m.Learner })
	}
	for i := len(s.members) - 1; victim < 0 && len(s.members) > s.Spec.Size && i >= 0; i-- {
		if s.members[i].ID != s.leader {
			victim = i
		}
	}
	if victim < 0 {
		return s.tidy(ctx) // an earlier run has done it
	}
	return s.remove(ctx, s.members[victim])
}

// replace removes a member whose Pod and data are gone. The machine then decides whether to add another.
func replace(ctx context.Context, s *session) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	for _, m := range s.members {
		name, err := s.nameOf(m)
		if err != nil {
			return err
		}
		if !s.alive(name) {
			return s.remove(ctx, m)
		}
	}
	return s.tidy(ctx)
}

// remove removes a member, and then its Pod.
func (s *session) remove(ctx context.Context, m etcd.Member) error {
	name, err := s.nameOf(m)
	if err != nil {
		return err
	}
	by := s.voter(name)
	if by == "" {
		return nil // as in ready
	}
	if err := etcd.Remove(ctx, s.clientURL(by), m.ID); err != nil {
		return notYet(fmt.Errorf("removing member %s of %s: %w", name, s.Name, err))
	}
	s.Log.Info("removed an etcd member", "member", name, "id", m.ID.String())
	if err := s.stop(ctx, name); err != nil {
		return err
	}
	return s.look(ctx)
}

// tidy deletes Pods that belong to no member, as after a crash, if the members are known.
func (s *session) tidy(ctx context.Context) error {
	for name := range s.pods {
		member := slices.ContainsFunc(s.members, func(m etcd.Member) bool { return slices.Contains(m.PeerURLs, s.peerURL(name)) })
		if member || s.members == nil {
			continue
		}
		if err := s.stop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// notYet converts a refusal for the time being to waiting. etcd refuses changes until the cluster has been healthy
// for five seconds.
func notYet(err error) error {
	if errors.Is(err, etcd.ErrNotYet) {
		return dsl.Waiting("etcd: "+err.Error(), soon)
	}
	return err
}

// ready looks, and returns a member to ask for a change. It returns none if a voting member is not healthy, because
// nothing may be changed then. That is not an error: the machine goes to the state that handles it.
func (s *session) ready(ctx context.Context) (by string, err error) {
	if err := s.look(ctx); err != nil {
		return "", err
	}
	for _, m := range s.members {
		name, err := s.nameOf(m)
		if err != nil || !m.Learner && !s.answers[name].healthy() {
			return "", err
		}
	}
	return s.voter(""), nil
}

// Functions registers the functions.
func Functions(r *actions.Registry) {
	pods, status := dsl.MustParseNeed("get,create,patch,delete", podResource), dsl.MustParseNeed("patch", "self/status")
	for _, f := range []struct {
		name, doc string
		step      func(context.Context, *session) error
	}{
		{"etcd.Look", "says in the status which members an etcd cluster has, and how they are", look},
		{"etcd.Create", "makes the Pod of the first member of an etcd cluster", create},
		{"etcd.Add", "adds a member to an etcd cluster that has too few, as a learner, and makes its Pod", add},
		{"etcd.Promote", "gives a learner that has caught up its vote", promote},
		{"etcd.Remove", "removes a member of an etcd cluster that has too many, and then its Pod", remove},
		{"etcd.Restart", "gives one member of an etcd cluster its new image, so that its container restarts, while all others are healthy", restart},
		{"etcd.Replace", "removes a member of an etcd cluster whose Pod is gone", replace},
	} {
		r.Function(dsl.Function{Name: f.name, Doc: f.doc, Func: function(f.step), Params: parameters{}, Needs: []dsl.Need{pods, status}})
	}
}

// dead reports whether a Pod's data is lost or will be: the Pod has ended, was evicted, or is being deleted.
func dead(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
