// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/handlers/etcd"
)

// The times until the next look: while a change is in progress, and when all members are healthy.
const (
	etcdSoon  = time.Second
	etcdLater = 10 * time.Second
)

// etcdLook writes the members of an etcd cluster and their health to status.members. It deletes Pods that belong to
// no member.
func etcdLook(ctx context.Context, s *etcdSession) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	return s.tidy(ctx)
}

// etcdCreate makes the Pod of the first member of a new cluster. It deletes Pods of an earlier cluster.
func etcdCreate(ctx context.Context, s *etcdSession) error {
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
	s.note([]etcdMember{{Name: name}})
	s.Patch.SetStatus("next", s.Status.Next+1)
	return nil
}

// etcdAdd adds a member as a learner, and makes its Pod, if the cluster has too few members and all are healthy. No
// other function makes a Pod that joins a cluster. A new Pod for a member with a vote would have lost the data that
// the member has acknowledged, so a Pod is made only if etcd says that the member is a learner.
func etcdAdd(ctx context.Context, s *etcdSession) error {
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

// etcdPromote promotes a learner that has caught up.
func etcdPromote(ctx context.Context, s *etcdSession) error {
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

// etcdRemove removes a member if the cluster has too many and all are healthy. It prefers a learner, and otherwise
// the youngest member that is not the leader. The Pod is deleted afterwards.
func etcdRemove(ctx context.Context, s *etcdSession) error {
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

// etcdReplace removes a member whose Pod and data are gone. The machine then decides whether to add another.
func etcdReplace(ctx context.Context, s *etcdSession) error {
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
func (s *etcdSession) remove(ctx context.Context, m etcd.Member) error {
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
func (s *etcdSession) tidy(ctx context.Context) error {
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
		return dsl.Waiting("etcd: "+err.Error(), etcdSoon)
	}
	return err
}

// ready looks, and returns a member to ask for a change. It returns none if a voting member is not healthy, because
// nothing may be changed then. That is not an error: the machine goes to the state that handles it.
func (s *etcdSession) ready(ctx context.Context) (by string, err error) {
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

// Etcd registers the functions of samples/etcd.
func Etcd(r *actions.Registry) {
	pods, status := dsl.MustParseNeed("get,create,patch,delete", etcdPods), dsl.MustParseNeed("patch", "self/status")
	for _, f := range []struct {
		name, doc string
		step      func(context.Context, *etcdSession) error
	}{
		{"etcd.Look", "says in the status which members an etcd cluster has, and how they are", etcdLook},
		{"etcd.Create", "makes the Pod of the first member of an etcd cluster", etcdCreate},
		{"etcd.Add", "adds a member to an etcd cluster that has too few, as a learner, and makes its Pod", etcdAdd},
		{"etcd.Promote", "gives a learner that has caught up its vote", etcdPromote},
		{"etcd.Remove", "removes a member of an etcd cluster that has too many, and then its Pod", etcdRemove},
		{"etcd.Replace", "removes a member of an etcd cluster whose Pod is gone", etcdReplace},
	} {
		r.Function(dsl.Function{Name: f.name, Doc: f.doc, Func: etcdFunc(f.step), Params: etcdParams{}, Needs: []dsl.Need{pods, status}})
	}
}

// dead reports whether a Pod's data is lost or will be: the Pod has ended, was evicted, or is being deleted.
func dead(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
