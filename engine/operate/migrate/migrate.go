// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package migrate has the API server store the objects of a custom resource in the version that its CRD says.
//
// After a change of the stored version, an object keeps its old form until somebody writes it. The versions that objects may be stored in
// stand in status.storedVersions of the CRD, and none of them may go. Package migrate writes each object as it was read, and then removes
// the other versions from that list.
package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// DefaultPage is the number of objects that are listed at once, as kubectl does.
const DefaultPage = 500

// attempts is how often an object, or the CRD, is written that others change at the same time.
const attempts = 5

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Migration is the migration of one resource.
type Migration struct {
	client  dynamic.Interface
	name    string
	page    int64
	storage string
	old     []string
	objects schema.GroupVersionResource
	done    Progress
}

// Progress counts objects.
type Progress struct {
	// Written objects are stored in the new version, and Gone ones were deleted meanwhile.
	Written, Gone int
	// Remaining is about how many are left; -1 if the API server does not say.
	Remaining int64
	// Failed are the objects that could not be written, with the reasons.
	Failed []error
}

// New reads the CRD of that name, as in foos.example.com. A page is the number of objects that are listed at once.
func New(ctx context.Context, client dynamic.Interface, name string, page int64) (*Migration, error) {
	m := &Migration{client: client, name: name, page: page}
	crd, err := client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading CRD %s: %w", name, m.advised(err))
	}
	if m.storage = storageOf(crd); m.storage == "" {
		return nil, fmt.Errorf("reading CRD %s: it has no stored version", name)
	}
	m.old = m.oldIn(crd)
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	m.objects = schema.GroupVersionResource{Group: group, Version: m.storage, Resource: plural}
	return m, nil
}

// storageOf returns the stored version of a CRD.
func storageOf(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range plain.Maps(versions) {
		if version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// oldIn returns the other versions that objects may be stored in.
func (m *Migration) oldIn(crd *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return slices.DeleteFunc(stored, func(version string) bool { return version == m.storage })
}

// Storage returns the version in which objects are stored from now on, and Old the others in which some may be.
func (m *Migration) Storage() string { return m.storage }

// Old returns the other versions in which objects may be stored.
func (m *Migration) Old() []string { return slices.Clone(m.old) }

// Done returns the progress so far.
func (m *Migration) Done() Progress { return m.done }

// Pages writes all objects, and yields the progress after each page. An error ends it; objects that cannot be written are part of the
// progress.
func (m *Migration) Pages(ctx context.Context) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		next := ""
		for {
			list, err := m.client.Resource(m.objects).List(ctx, metav1.ListOptions{Limit: m.page, Continue: next})
			if again := continued(err); again != "" {
				next = again // the objects are of another time, which does not matter here
				continue
			}
			if err != nil {
				yield(m.done, fmt.Errorf("listing %s: %w", m.name, m.advised(err)))
				return
			}
			for i := range list.Items {
				if err := m.write(ctx, &list.Items[i]); err != nil {
					yield(m.done, err)
					return
				}
			}
			if m.done.Remaining = 0; list.GetContinue() != "" {
				m.done.Remaining = -1
				if left := list.GetRemainingItemCount(); left != nil {
					m.done.Remaining = *left
				}
			}
			if next = list.GetContinue(); !yield(m.done, nil) || next == "" {
				return
			}
		}
	}
}

// continued returns where a list goes on whose time the API server has forgotten.
func continued(err error) string {
	if of := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &of) {
		return of.Status().Continue
	}
	return ""
}

// write writes an object as it was read. The error is one that ends the migration.
func (m *Migration) write(ctx context.Context, o *unstructured.Unstructured) error {
	client, name := m.client.Resource(m.objects).Namespace(o.GetNamespace()), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	for left := attempts; ; left-- {
		_, err := client.Update(ctx, o, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) && left > 1 {
			o, err = client.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil:
			m.done.Written++
		case apierrors.IsNotFound(err):
			m.done.Gone++
		case apierrors.IsForbidden(err) || ctx.Err() != nil:
			return fmt.Errorf("writing %s: %w", name, m.advised(err))
		default:
			m.done.Failed = append(m.done.Failed, fmt.Errorf("writing %s: %w", name, err))
		}
		return nil
	}
}

// Finish removes the other versions from those that may be stored. It is an error if an object could not be written, or if another
// version is stored now.
func (m *Migration) Finish(ctx context.Context) error {
	if n := len(m.done.Failed); n > 0 {
		return fmt.Errorf("finishing the migration of %s: %d objects could not be written, so %s stays in status.storedVersions", m.name, n, strings.Join(m.old, ", "))
	}
	for left := attempts; ; left-- {
		err := m.finish(ctx)
		if err == nil || !apierrors.IsConflict(err) || left == 1 {
			return err
		}
	}
}

func (m *Migration) finish(ctx context.Context) error {
	crd, err := m.client.Resource(crds).Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading CRD %s: %w", m.name, m.advised(err))
	}
	if now := storageOf(crd); now != m.storage {
		return fmt.Errorf("finishing the migration of %s: the stored version is %s now; migrate again", m.name, now)
	}
	if len(m.oldIn(crd)) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.GetResourceVersion()}, "status": map[string]any{"storedVersions": []string{m.storage}},
	})
	if err != nil {
		return err
	}
	if _, err := m.client.Resource(crds).Patch(ctx, m.name, types.MergePatchType, text, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("patching status.storedVersions of CRD %s: %w", m.name, m.advised(err))
	}
	return nil
}

// advised adds the rights that a migration needs to an error about a missing one.
func (m *Migration) advised(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w (operator migrate needs: get customresourcedefinitions.apiextensions.k8s.io; patch customresourcedefinitions.apiextensions.k8s.io/status; list, get and update %s)", err, m.name)
}
