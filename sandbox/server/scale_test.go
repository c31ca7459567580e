// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheScaleOfADeployment(t *testing.T) {
	w := newWire(t, server.Settings{})
	deployments := w.typed().AppsV1().Deployments("default")
	replicas := int32(2)
	made, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 2 || scale.Status.Selector != "app=web" || scale.ResourceVersion != made.ResourceVersion {
		t.Fatalf("the scale: %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 5
	if scale, err = deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{}); err != nil || scale.Spec.Replicas != 5 {
		t.Fatalf("the updated scale: %+v, %v", scale, err)
	}
	_, err = deployments.UpdateScale(t.Context(), "web", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: made.ResourceVersion}}, metav1.UpdateOptions{})
	if err == nil || !strings.Contains(err.Error(), "the object has been modified") {
		t.Errorf("an update of an old version gets %v", err)
	}
	if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{}, "scale"); err == nil {
		now, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || *now.Spec.Replicas != 7 || now.Generation != 3 {
			t.Errorf("the Deployment: %v, %v", now, err)
		}
	} else {
		t.Error(err)
	}
	w.refuses(map[string]refusal{
		"fewer than none":   {"PATCH /apis/apps/v1/namespaces/default/deployments/web/scale", `{"spec":{"replicas":-1}}`, "application/merge-patch+json", `422 Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`},
		"an unknown object": {"GET /apis/apps/v1/namespaces/default/deployments/other/scale", ``, "", `404 deployments.apps "other" not found`},
	})
}

func TestTheScaleOfACustomResource(t *testing.T) {
	w := newWire(t, server.Settings{})
	scalable := strings.Replace(crd, `"status":{}`, `"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size","labelSelectorPath":".status.selector"}`, 1)
	w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", scalable)
	w.send(http.MethodPost, foos, `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"size":1}}`)
	w.send(http.MethodPatch, foos+"/a/status", `{"status":{"size":4,"selector":"a=b"}}`, "Content-Type", "application/merge-patch+json")
	out := w.send(http.MethodPatch, foos+"/a/scale", `{"spec":{"replicas":3}}`, "Content-Type", "application/merge-patch+json")
	if got := fmt.Sprint(out.json["kind"], out.json["spec"], out.json["status"]); got != "Scalemap[replicas:3] map[replicas:4 selector:a=b]" {
		t.Errorf("the scale: %s", got)
	}
	if out := w.send(http.MethodGet, foos+"/a", ""); fmt.Sprint(out.json["spec"]) != "map[size:3]" || out.meta("generation") != "2" {
		t.Errorf("the object: %s", out.text)
	}
}
