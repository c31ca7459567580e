// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller has a controller as kubebuilder scaffolds it. It knows nothing of the sandbox; its tests do.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/handwerk-dev/handwerk/hack/example-manager/api/v1"
)

// WebAppReconciler makes a Deployment for each WebApp, and counts its ready Pods.
type WebAppReconciler struct{ client.Client }

// Reconcile brings a WebApp to its spec.
func (r *WebAppReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &v1.WebApp{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app.Name, Namespace: app.Namespace}}
	_, err := ctrl.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"app": app.Name}
		deployment.Spec.Replicas = &app.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app"}}
		}
		deployment.Spec.Template.Spec.Containers[0].Image = app.Spec.Image
		return ctrl.SetControllerReference(app, deployment, r.Scheme())
	})
	if err != nil || app.Status.ReadyReplicas == deployment.Status.ReadyReplicas {
		return ctrl.Result{}, err
	}
	app.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	return ctrl.Result{}, r.Status().Update(ctx, app)
}

// SetupWithManager adds the controller to a manager.
func (r *WebAppReconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&v1.WebApp{}).Owns(&appsv1.Deployment{}).Complete(r)
}
