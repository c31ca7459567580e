// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package complete_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestClientsThatTakeProtobufAloneWork reads, lists, watches and writes as controllers of Kubernetes do.
func TestClientsThatTakeProtobufAloneWork(t *testing.T) {
	web := httptest.NewServer(server.New(complete.Settings()).Handler())
	defer web.Close()
	config := &rest.Config{Host: web.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf}}
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := maps.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, got); diff != "" || got.UID == "" {
		t.Errorf("the object (-created +read):\n%s", diff)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "!x"})
	if err != nil || len(list.Items) == 0 || list.ResourceVersion == "" {
		t.Fatalf("the list: %v, %v", list, err)
	}
	if _, err := maps.Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an absent object: %v", err)
	}
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a", ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	got.Data["k"] = "w"
	if _, err := maps.Update(ctx, got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	event := <-watch.ResultChan()
	if o, is := event.Object.(*corev1.ConfigMap); !is || event.Type != "MODIFIED" || o.Data["k"] != "w" {
		t.Errorf("the event is %s of %v", event.Type, event.Object)
	}
}
