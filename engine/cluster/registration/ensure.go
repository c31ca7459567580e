// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// problem is an error for people, with advice.
type problem struct {
	text  string
	cause error
}

// Error is the text.
func (p *problem) Error() string { return p.text }

// Unwrap returns the API server's answer.
func (p *problem) Unwrap() error { return p.cause }

// advised returns the error of a request with what to do about it.
func advised(doing string, gvr schema.GroupVersionResource, err error) error {
	name := gvr.Resource + "." + gvr.Version + "." + gvr.Group
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &problem{fmt.Sprintf("%s: the account lacks a right to %s; operator rbac prints the roles", doing, name), err}
	case notfound.IsUnserved(err):
		return &problem{fmt.Sprintf("%s: the API server does not serve %s; Kubernetes %s and later do", doing, name, since(gvr)), err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// since returns the version of Kubernetes that began to serve a resource.
func since(gvr schema.GroupVersionResource) string {
	for _, k := range kinds {
		if k.group == gvr.Group && k.resource == gvr.Resource {
			return k.versions[gvr.Version]
		}
	}
	return ""
}

// ensure has an object be as wanted. It returns how long the object must wait for its pace, if it must.
func (k *Keeper) ensure(ctx context.Context, w *wanted, p *pace) (wait time.Duration, err error) {
	of := k.watch(ctx, w.place())
	if err := of.failure(); err != nil {
		return 0, advised("watching "+w.name(), w.gvr, err)
	}
	if o := of.get(w.object.GetName()); o != nil && w.isDone(o, p) {
		return 0, nil
	}
	// The cache may be behind this keeper's own write.
	client := k.set.Client.Resource(w.gvr)
	o, err := client.Get(ctx, w.object.GetName(), metav1.GetOptions{})
	missing := notfound.IsGone(err, w.gvr.GroupResource(), w.object.GetName())
	switch {
	case missing && w.part:
		return 0, &problem{text: "applying the conversion of " + w.name() + ": the CRD does not exist"}
	case err != nil && !missing:
		return 0, advised("reading "+w.name(), w.gvr, err)
	case !missing && w.isDone(o, p):
		return 0, nil
	}
	now := time.Now()
	if wait := p.next.Sub(now); wait > 0 {
		return wait, &problem{"applying " + w.name() + ": somebody changes it again and again, so it is put back later", errPending}
	}
	made, err := k.write(ctx, w)
	if err != nil {
		return 0, advised("applying "+w.name(), w.gvr, err)
	}
	k.set.Log.Info("applied an object of webhooks and policies", "object", w.name())
	p.corrected(now)
	if p.accepted = 0; !w.matches(made) {
		p.accepted = made.GetGeneration()
	}
	return 0, nil
}

// write applies the object. A part of another owner's object is sent as a merge patch. It also removes a url or service that somebody
// else has set, which an apply cannot.
func (k *Keeper) write(ctx context.Context, w *wanted) (*unstructured.Unstructured, error) {
	client := k.set.Client.Resource(w.gvr)
	if !w.part {
		return client.Apply(ctx, w.object.GetName(), w.object, metav1.ApplyOptions{FieldManager: k.set.Manager, Force: true})
	}
	text, err := w.object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return client.Patch(ctx, w.object.GetName(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: k.set.Manager})
}

// corrected computes when the object may be corrected next.
func (p *pace) corrected(now time.Time) {
	if now.Sub(p.next) > quiet {
		p.wait = 0
	}
	var in time.Duration
	p.wait, in = backoff.Next(p.wait, firstWait, longestWait)
	p.next = now.Add(in)
}

// isDone reports whether an apply would change nothing.
func (w *wanted) isDone(o *unstructured.Unstructured, p *pace) bool {
	if p.accepted != 0 && o.GetGeneration() == p.accepted {
		return contains(o.Object["metadata"], w.object.Object["metadata"])
	}
	return w.matches(o)
}

// prune deletes objects that have the labels and are not wanted.
func (k *Keeper) prune(ctx context.Context, all []*wanted) (errs []error) {
	keep := map[string]bool{}
	for _, w := range all {
		keep[w.id()] = true
	}
	remove := func(gvr schema.GroupVersionResource, objects []*unstructured.Unstructured) {
		for _, o := range objects {
			if !keep[gvr.Resource+"/"+o.GetName()] {
				errs = append(errs, k.remove(ctx, gvr, o))
			}
		}
	}
	for at, w := range k.watches {
		if at.name == "" && w.failure() == nil {
			remove(at.gvr, w.list())
		}
	}
	if k.cleaned {
		return errs
	}
	never, err := k.neverWanted(ctx)
	errs = append(errs, err)
	for _, gvr := range never {
		list, err := k.leftovers(ctx, gvr)
		errs = append(errs, err)
		remove(gvr, list)
	}
	k.cleaned = errors.Join(errs...) == nil
	return errs
}

// neverWanted returns the resources that this process has not wanted, and an earlier one may have. It leaves out those that the account
// may not list: an operator that never wanted them needs no right to them.
func (k *Keeper) neverWanted(ctx context.Context) (out []schema.GroupVersionResource, err error) {
	rules := []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	if k.set.Rules != nil {
		if rules, err = k.set.Rules(ctx); apierrors.IsForbidden(err) {
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("asking for the rights of the account: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for _, version := range slices.Sorted(maps.Keys(kinds[name].versions)) {
			gvr := schema.GroupVersionResource{Group: kinds[name].group, Version: version, Resource: kinds[name].resource}
			if name != crdKind && k.watches[place{gvr: gvr}] == nil && mayList(rules, gvr) {
				out = append(out, gvr)
			}
		}
	}
	return out, nil
}

// mayList reports whether rules include the right to list all objects of a resource.
func mayList(rules []authorizationv1.ResourceRule, gvr schema.GroupVersionResource) bool {
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool {
		return len(r.ResourceNames) == 0 && has(r.Verbs, "list") && has(r.APIGroups, gvr.Group) && has(r.Resources, gvr.Resource)
	})
}

// leftovers lists objects of a resource that is not watched. A server without the resource has none.
func (k *Keeper) leftovers(ctx context.Context, gvr schema.GroupVersionResource) (out []*unstructured.Unstructured, err error) {
	list, err := k.set.Client.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: k.selector()})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, advised("listing "+gvr.Resource, gvr, err)
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// remove deletes an object as it was seen.
func (k *Keeper) remove(ctx context.Context, gvr schema.GroupVersionResource, o *unstructured.Unstructured) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := k.set.Client.Resource(gvr).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsConflict(err) || notfound.IsGone(err, gvr.GroupResource(), o.GetName()) {
		return nil // its event is on the way
	}
	if err == nil {
		k.set.Log.Info("deleted an object of webhooks and policies that is not wanted any more", "object", o.GetKind()+" "+o.GetName())
	}
	return advised("deleting "+o.GetKind()+" "+o.GetName(), gvr, err)
}
