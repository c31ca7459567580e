// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

func TestEventsOfBothGroupsAreTheSameObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{})
		client := w.typed()
		old := client.CoreV1().Events("default")
		newer := client.EventsV1().Events("default")
		watched, err := newer.Watch(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=web"})
		if err != nil {
			t.Fatal(err)
		}
		defer watched.Stop()
		_, err = old.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web", Namespace: "default"},
			Message: "hello", Count: 3, Source: corev1.EventSource{Component: "me"}, ReportingController: "controller",
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := newer.Get(t.Context(), "e", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.Regarding.Name, got.Note, got.DeprecatedCount, got.DeprecatedSource.Component, got.ReportingController); text != "web"+"hello"+"3"+"me"+"controller" {
			t.Errorf("the new form has %s", text)
		}
		got.Note = "changed"
		if _, err := newer.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := old.List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=web"})
		if err != nil || len(list.Items) != 1 || list.Items[0].Message != "changed" {
			t.Errorf("the old form's list has %v: %v", list.Items, err)
		}
		for _, want := range []string{"hello", "changed"} {
			event := <-watched.ResultChan()
			if e, ok := event.Object.(*eventsv1.Event); !ok || e.Note != want || e.Regarding.Name != "web" {
				t.Errorf("the watch of the new form has %v, want %s", event.Object, want)
			}
		}
		w.send(http.MethodDelete, "/api/v1/namespaces/default/events/e", "")
		if left, err := newer.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
			t.Errorf("%d Events are left: %v", len(left.Items), err)
		}
	})
}

func TestBroadcastersOfBothGroupsWriteEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{})
		client := w.typed()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}}
		newer := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
		if err := newer.StartRecordingToSinkWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		recorder := newer.NewRecorder(scheme.Scheme, "new")
		for range 3 { // the second one makes a series, by a patch
			recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Made", "Making", "it is there")
			synctest.Wait()
		}
		time.Sleep(time.Second) // the name of an Event is made of the time
		older := record.NewBroadcaster(record.WithContext(t.Context()))
		older.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
		for range 3 { // the second one raises the count, by a patch
			older.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"}).Event(pod, corev1.EventTypeWarning, "Lost", "it is gone")
			synctest.Wait()
		}
		newer.Shutdown()
		older.Shutdown()
		got := map[string]string{}
		list, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			series := int32(0)
			if e.Series != nil {
				series = e.Series.Count
			}
			got[e.Reason] = fmt.Sprint(e.InvolvedObject.Name, ": ", e.Message, " ", e.Count, " ", series)
		}
		want := map[string]string{"Made": "web: it is there 0 2", "Lost": "web: it is gone 3 0"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestAnEventEndsOnceWithItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{})
		w.send(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"team"}}`)
		w.send(http.MethodPost, "/api/v1/namespaces/team/events", `{"metadata":{"name":"e"}}`)
		watched, err := w.typed().EventsV1().Events("team").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.send(http.MethodDelete, "/api/v1/namespaces/team", "")
		var got []string
		go func() {
			for event := range watched.ResultChan() {
				got = append(got, string(event.Type))
			}
		}()
		time.Sleep(time.Minute)
		watched.Stop()
		synctest.Wait()
		if diff := cmp.Diff([]string{"ADDED", "DELETED"}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if out := w.send(http.MethodGet, "/api/v1/namespaces/team", ""); out.code != http.StatusNotFound {
			t.Errorf("the namespace: %d %s", out.code, out.text)
		}
	})
}
