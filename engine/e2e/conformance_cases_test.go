// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

type conformanceCase struct {
	play func(*scene) string
	want string
}

func conformance() map[string]conformanceCase {
	all := map[string]conformanceCase{}
	for _, some := range []map[string]conformanceCase{writeCases(), deleteCases(), applyCases(), watchCases()} {
		maps.Copy(all, some)
	}
	return all
}

func writeCases() map[string]conformanceCase {
	return map[string]conformanceCase{
		"a created object has generation 1 and no status": {
			play: func(s *scene) string { return outcome(s.create(`{spec: {size: 1}, status: {x: 1}}`), nil) },
			want: "spec map[size:1] status <nil> labels map[] generation 1",
		},
		"the generation moves with the spec alone": {
			play: func(s *scene) string {
				s.create(`{spec: {size: 1}}`)
				one, err1 := s.merge(`{"metadata":{"labels":{"a":"b"}}}`)
				two, err2 := s.merge(`{"spec":{"size":2}}`)
				three, err3 := s.merge(`{"status":{"x":1}}`, "status")
				return lines(outcome(one, err1), outcome(two, err2), outcome(three, err3))
			},
			want: lines("spec map[size:1] status <nil> labels map[a:b] generation 1", "spec map[size:2] status <nil> labels map[a:b] generation 2",
				"spec map[size:2] status map[x:1] labels map[a:b] generation 2"),
		},
		"each endpoint ignores what belongs to the other": {
			play: func(s *scene) string {
				s.create(`{spec: {size: 1}}`)
				one, err1 := s.merge(`{"spec":{"size":2},"status":{"x":1}}`)
				two, err2 := s.merge(`{"spec":{"size":3},"status":{"x":2},"metadata":{"labels":{"a":"b"}}}`, "status")
				return lines(outcome(one, err1), outcome(two, err2))
			},
			want: lines("spec map[size:2] status <nil> labels map[] generation 2", "spec map[size:2] status map[x:2] labels map[] generation 2"),
		},
		"a patch that changes nothing leaves the version": {
			play: func(s *scene) string {
				before := s.create(`{spec: {size: 1}}`)
				after, err := s.merge(`{"spec":{"size":1},"metadata":{"uid":"` + string(before.GetUID()) + `"}}`)
				return fmt.Sprint(err, before.GetResourceVersion() == after.GetResourceVersion())
			},
			want: "<nil> true",
		},
		"a patch from a stale version is a conflict, on both endpoints": {
			play: func(s *scene) string {
				stale := s.create(`{spec: {size: 1}}`).GetResourceVersion()
				_, err := s.merge(`{"spec":{"size":2}}`)
				_, main := s.merge(`{"spec":{"size":3},"metadata":{"resourceVersion":"` + stale + `"}}`)
				_, status := s.merge(`{"status":{"size":3},"metadata":{"resourceVersion":"`+stale+`"}}`, "status")
				return lines(fmt.Sprint(err), outcome(nil, main), outcome(nil, status))
			},
			want: "<nil>; 409; 409",
		},
		"a patch that names another uid is invalid, but a custom resource's status endpoint does not look": {
			play: func(s *scene) string {
				s.create(`{spec: {size: 1}}`)
				_, err := s.merge(`{"spec":{"size":2},"metadata":{"uid":"other"}}`)
				status, err2 := s.merge(`{"status":{"size":2},"metadata":{"uid":"other"}}`, "status")
				return lines(outcome(nil, err), outcome(status, err2))
			},
			want: "422 metadata.uid; spec map[size:1] status map[size:2] labels map[] generation 1",
		},
		"an update needs the version, and the same uid": {
			play: func(s *scene) string {
				o := s.create(`{spec: {size: 1}}`)
				blind := o.DeepCopy()
				blind.SetResourceVersion("")
				_, err1 := s.foos().Update(s.ctx, blind, metav1.UpdateOptions{})
				o.SetUID("other")
				_, err2 := s.foos().Update(s.ctx, o, metav1.UpdateOptions{})
				return lines(outcome(nil, err1), outcome(nil, err2))
			},
			want: "422 metadata.resourceVersion; 409",
		},
		"annotations have a limit that all of them share": {
			play: func(s *scene) string {
				s.create(`{metadata: {annotations: {theirs: "` + strings.Repeat("x", 200<<10) + `"}}}`)
				fits, err1 := s.merge(`{"metadata":{"annotations":{"ours":"` + strings.Repeat("x", 50<<10) + `"}}}`)
				_, err2 := s.merge(`{"metadata":{"annotations":{"ours":"` + strings.Repeat("x", 60<<10) + `"}}}`)
				return lines(fmt.Sprint(err1, len(fits.GetAnnotations())), outcome(nil, err2))
			},
			want: "<nil> 2; 422 metadata.annotations",
		},
		"a second one of the name, a missing namespace, and what is not served are refused": {
			play: func(s *scene) string {
				s.create(`{}`)
				_, err1 := s.foos().Create(s.ctx, s.object(`{}`), metav1.CreateOptions{})
				foos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
				_, err2 := s.client.Resource(foos).Namespace("nowhere").Create(s.ctx, s.object(`{}`), metav1.CreateOptions{})
				_, err3 := s.client.Resource(foos.GroupVersion().WithResource("bars")).List(s.ctx, metav1.ListOptions{})
				_, err4 := s.foos().Get(s.ctx, "missing", metav1.GetOptions{})
				_, err5 := s.foos().Patch(s.ctx, "web", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
				return lines(outcome(nil, err1), outcome(nil, err2), outcome(nil, err3), outcome(nil, err4), outcome(nil, err5))
			},
			want: "409; 404; 404; 404; 415",
		},
	}
}

func deleteCases() map[string]conformanceCase {
	return map[string]conformanceCase{
		"finalizers hold a deleted object, with a new generation, until the last is gone": {
			play: func(s *scene) string {
				s.create(`{metadata: {finalizers: [example.com/a]}}`)
				err1 := s.foos().Delete(s.ctx, "web", metav1.DeleteOptions{})
				held, err2 := s.foos().Get(s.ctx, "web", metav1.GetOptions{})
				_, err3 := s.merge(`{"metadata":{"finalizers":["example.com/a","example.com/b"]}}`)
				last, err4 := s.merge(`{"metadata":{"finalizers":[]}}`)
				_, err5 := s.foos().Get(s.ctx, "web", metav1.GetOptions{})
				return lines(fmt.Sprint(err1, err2, held.GetDeletionTimestamp() != nil, held.GetGeneration()), outcome(nil, err3),
					fmt.Sprint(err4, last.GetResourceVersion() == held.GetResourceVersion()), outcome(nil, err5))
			},
			want: "<nil> <nil> true 2; 422 metadata.finalizers; <nil> true; 404",
		},
		"a deletion of another uid or version is a conflict": {
			play: func(s *scene) string {
				o := s.create(`{}`)
				uid, version := types.UID("other"), "1"
				err1 := s.foos().Delete(s.ctx, "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
				err2 := s.foos().Delete(s.ctx, "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
				uid, version = o.GetUID(), o.GetResourceVersion()
				err3 := s.foos().Delete(s.ctx, "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
				return lines(outcome(nil, err1), outcome(nil, err2), fmt.Sprint(err3))
			},
			want: "409; 409; <nil>",
		},
	}
}

func managers(o *unstructured.Unstructured) string {
	var out []string
	for _, m := range o.GetManagedFields() {
		out = append(out, m.Manager+" "+string(m.Operation)+" "+m.Subresource)
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

func applyCases() map[string]conformanceCase {
	return map[string]conformanceCase{
		"apply creates, conflicts, takes over by force, and gives up what is left out": {
			play: func(s *scene) string {
				one, err1 := s.apply("a", false, `{spec: {size: 1, mass: 1}}`)
				_, err2 := s.apply("b", false, `{spec: {size: 2}}`)
				two, err3 := s.apply("b", true, `{spec: {size: 2}}`)
				three, err4 := s.apply("a", false, `{spec: {}}`)
				return lines(outcome(one, err1), outcome(nil, err2), outcome(two, err3)+" "+managers(two), outcome(three, err4))
			},
			want: lines("spec map[mass:1 size:1] status <nil> labels map[] generation 1", "409 .spec.size",
				"spec map[mass:1 size:2] status <nil> labels map[] generation 2 [a Apply  b Apply ]", "spec map[size:2] status <nil> labels map[] generation 3"),
		},
		"the same apply again leaves the version": {
			play: func(s *scene) string {
				one, err1 := s.apply("a", false, `{spec: {size: 1}}`)
				two, err2 := s.apply("a", true, `{spec: {size: 1}}`)
				return fmt.Sprint(err1, err2, one.GetResourceVersion() == two.GetResourceVersion())
			},
			want: "<nil> <nil> true",
		},
		"apply with a uid never creates and never changes another object": {
			play: func(s *scene) string {
				_, err1 := s.apply("a", true, `{metadata: {uid: other}, spec: {size: 1}}`)
				s.create(`{spec: {size: 1}}`)
				_, err2 := s.apply("a", true, `{metadata: {uid: other}, spec: {size: 2}}`)
				return lines(outcome(nil, err1), outcome(nil, err2))
			},
			want: "409; 422 metadata.uid",
		},
		"apply with a version that nothing has creates, and never changes what is there": {
			play: func(s *scene) string {
				one, err1 := s.apply("a", false, `{metadata: {resourceVersion: "1"}, spec: {size: 1}}`)
				_, err2 := s.apply("a", false, `{metadata: {resourceVersion: "1"}, spec: {size: 1}}`)
				_, err3 := s.apply("b", true, `{metadata: {resourceVersion: "1"}, spec: {mass: 2}}`)
				return lines(outcome(one, err1), managers(one), outcome(nil, err2), outcome(nil, err3))
			},
			want: "spec map[size:1] status <nil> labels map[] generation 1; [a Apply ]; 409; 409",
		},
		"a Deployment is created by apply with a version that nothing has, too": {
			play: func(s *scene) string {
				_, err1 := s.deployments().Apply(s.ctx, "web", s.pod("one", "1"), metav1.ApplyOptions{FieldManager: "a"})
				_, err2 := s.deployments().Apply(s.ctx, "web", s.pod("one", "1"), metav1.ApplyOptions{FieldManager: "a", Force: true})
				return lines(fmt.Sprint(err1), outcome(nil, err2))
			},
			want: "<nil>; 409",
		},
		"finalizers and owner references of several managers are joined": {
			play: func(s *scene) string {
				// Owners of a kind that is not served: the garbage collector would delete the object for
				// want of others, and one that is being deleted takes no more finalizers.
				_, err1 := s.apply("a", false, `{metadata: {finalizers: [x/a], ownerReferences: [{apiVersion: none.example.com/v1, kind: None, name: a, uid: ua}]}}`)
				o, err2 := s.apply("b", false, `{metadata: {finalizers: [x/b], ownerReferences: [{apiVersion: none.example.com/v1, kind: None, name: b, uid: ub}]}}`)
				if err := errors.Join(err1, err2); err != nil {
					return err.Error()
				}
				return fmt.Sprint(err1, err2, o.GetFinalizers(), len(o.GetOwnerReferences()))
			},
			want: "<nil> <nil> [x/a x/b] 2",
		},
		"each write's manager is noted, by endpoint": {
			play: func(s *scene) string {
				o, err := s.foos().Create(s.ctx, s.object(`{spec: {size: 1}}`), metav1.CreateOptions{FieldManager: "a"})
				if err != nil {
					return err.Error()
				}
				_, err = s.foos().Patch(s.ctx, o.GetName(), types.MergePatchType, []byte(`{"spec":{"mass":1}}`), metav1.PatchOptions{FieldManager: "b"})
				if err != nil {
					return err.Error()
				}
				o, err = s.foos().Patch(s.ctx, o.GetName(), types.MergePatchType, []byte(`{"status":{"mass":1}}`), metav1.PatchOptions{FieldManager: "b"}, "status")
				return fmt.Sprint(err, managers(o))
			},
			want: "<nil>[a Update  b Update  b Update status]",
		},
		"a Deployment's containers are joined by name": {
			play: func(s *scene) string {
				_, err1 := s.deployments().Apply(s.ctx, "web", s.pod("one", ""), metav1.ApplyOptions{FieldManager: "a"})
				o, err2 := s.deployments().Apply(s.ctx, "web", s.pod("two", ""), metav1.ApplyOptions{FieldManager: "b"})
				if err2 != nil {
					return err2.Error()
				}
				list, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				return fmt.Sprint(err1, len(list))
			},
			want: "<nil> 2",
		},
	}
}

func watchCases() map[string]conformanceCase {
	return map[string]conformanceCase{
		"a watch goes on from a version, and reports that an object left the selection": {
			play: func(s *scene) string {
				list, err := s.foos().List(s.ctx, metav1.ListOptions{LabelSelector: "in=yes"})
				if err != nil {
					return err.Error()
				}
				s.create(`{metadata: {labels: {in: "yes"}}, spec: {size: 1}}`)
				w, err := s.foos().Watch(s.ctx, metav1.ListOptions{LabelSelector: "in=yes", ResourceVersion: list.GetResourceVersion()})
				if err != nil {
					return err.Error()
				}
				defer w.Stop()
				_, _ = s.merge(`{"spec":{"size":2}}`)
				_, _ = s.merge(`{"metadata":{"labels":{"in":"no"}}}`)
				_, _ = s.merge(`{"metadata":{"labels":{"in":"yes"}}}`)
				_ = s.foos().Delete(s.ctx, "web", metav1.DeleteOptions{})
				return nextOf(w, 5)
			},
			want: "ADDED yes 1; MODIFIED yes 2; DELETED yes 2; ADDED yes 2; DELETED yes 2",
		},
		"a version that is yet to come cannot be listed": {
			play: func(s *scene) string {
				_, err := s.foos().List(s.ctx, metav1.ListOptions{
					ResourceVersion: "999999999999", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				})
				return fmt.Sprint(apierrors.IsTimeout(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
			},
			want: "true true",
		},
		"a streamed list ends with a bookmark": {
			play: func(s *scene) string {
				s.create(`{metadata: {labels: {in: "yes"}}, spec: {size: 1}}`)
				yes := true
				w, err := s.foos().Watch(s.ctx, metav1.ListOptions{
					SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				})
				if err != nil {
					return err.Error()
				}
				defer w.Stop()
				return nextOf(w, 2)
			},
			want: "ADDED yes 1; BOOKMARK true",
		},
	}
}

// nextOf returns the next events of a watch; versions must rise.
func nextOf(w watch.Interface, n int) string {
	var out []string
	for range n {
		e, open := <-w.ResultChan()
		if !open {
			return lines(append(out, "closed")...)
		}
		o := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Bookmark {
			out = append(out, "BOOKMARK "+o.GetAnnotations()[metav1.InitialEventsAnnotationKey])
			continue
		}
		count, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "size")
		out = append(out, fmt.Sprint(e.Type, " ", o.GetLabels()["in"], " ", count))
	}
	return lines(out...)
}
