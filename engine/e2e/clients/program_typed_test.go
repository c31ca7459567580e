// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

// typedObjects writes and reads objects, each by another verb.
func typedObjects(p *program) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	made, err := maps.Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.must(err)
	p.note("created", made, err)
	_, err = maps.Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.note("created again", nil, err)
	dry, err := maps.Create(p.ctx, configMap("b", "v"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	p.note("created in a dry run", dry, err)
	made.Data["k"] = "w"
	changed, err := maps.Update(p.ctx, made, metav1.UpdateOptions{FieldManager: "updater"})
	p.note("updated", changed, err)
	for kind, patch := range map[types.PatchType]string{
		types.StrategicMergePatchType: `{"data":{"strategic":"yes"}}`, types.MergePatchType: `{"data":{"merge":"yes"}}`,
		types.JSONPatchType: `[{"op":"add","path":"/data/json","value":"yes"}]`,
	} {
		_, err = maps.Patch(p.ctx, "a", kind, []byte(patch), metav1.PatchOptions{FieldManager: "patcher"})
		p.must(err)
	}
	read, err := maps.Get(p.ctx, "a", metav1.GetOptions{})
	p.note("patched", read.Data, err)
	_, err = maps.Get(p.ctx, "missing", metav1.GetOptions{})
	p.note("missing", nil, err)
	list, err := maps.List(p.ctx, own)
	p.note("listed", named(list.Items, (*corev1.ConfigMap).GetName), err)
	other := types.UID("00000000-0000-0000-0000-000000000000")
	p.note("deleted with another UID", nil, maps.Delete(p.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}))
	p.note("deleted", nil, maps.Delete(p.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &read.UID}}))
	for _, name := range []string{"c", "d"} {
		_, err = maps.Create(p.ctx, configMap(name, "v"), metav1.CreateOptions{})
		p.must(err)
	}
	p.note("deleted together", nil, maps.DeleteCollection(p.ctx, metav1.DeleteOptions{}, own))
	list, err = maps.List(p.ctx, own)
	p.note("left", len(list.Items), err)
}

// typedMistakes are those of typed objects.
func typedMistakes(p *program) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	_, err := p.typed.AppsV1().Deployments(p.namespace).Create(p.ctx, deployment, metav1.CreateOptions{})
	p.note("a Deployment without a selector", nil, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "Pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	_, err = p.typed.CoreV1().Pods(p.namespace).Create(p.ctx, pod, metav1.CreateOptions{})
	p.note("a Pod without an image", nil, err)
	_, err = p.typed.CoreV1().ConfigMaps("elsewhere-"+p.namespace).Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.note("in a namespace that is not there", nil, err)
	p.note("the end of a namespace of the cluster itself", nil, p.typed.CoreV1().Namespaces().Delete(p.ctx, metav1.NamespaceDefault, metav1.DeleteOptions{}))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	made, err := p.typed.CoreV1().Services(p.namespace).Create(p.ctx, service, metav1.CreateOptions{})
	p.must(err)
	made.Spec.ClusterIP, made.Spec.ClusterIPs = "10.0.0.77", []string{"10.0.0.77"}
	_, err = p.typed.CoreV1().Services(p.namespace).Update(p.ctx, made, metav1.UpdateOptions{})
	p.note("another address of a Service", nil, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "v"}, Immutable: new(true)}
	kept, err := p.typed.CoreV1().Secrets(p.namespace).Create(p.ctx, secret, metav1.CreateOptions{})
	p.must(err)
	p.note("a Secret", kept, nil)
	kept.Data["k"] = []byte("w")
	_, err = p.typed.CoreV1().Secrets(p.namespace).Update(p.ctx, kept, metav1.UpdateOptions{})
	p.note("a change of an immutable Secret", nil, err)
}

// conflicts updates an object that another has changed in between.
func conflicts(p *program) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	stale, err := maps.Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.must(err)
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		tries++
		if tries == 1 {
			_, err := maps.Patch(p.ctx, "a", types.MergePatchType, []byte(`{"data":{"other":"yes"}}`), metav1.PatchOptions{})
			p.must(err)
		}
		stale.Data["mine"] = "yes"
		_, failed := maps.Update(p.ctx, stale, metav1.UpdateOptions{})
		p.note("a try", nil, failed)
		stale, err = maps.Get(p.ctx, "a", metav1.GetOptions{})
		p.must(err)
		return failed
	})
	p.note("in the end", stale.Data, err)
	p.note("tries", tries, nil)
}

// pages lists more objects than a page has.
func pages(p *program) {
	secrets := p.typed.CoreV1().Secrets(p.namespace)
	for i := range 23 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s-", i), Labels: map[string]string{"by": fmt.Sprint(i % 2)}}}
		_, err := secrets.Create(p.ctx, secret, metav1.CreateOptions{})
		p.must(err)
	}
	for _, selector := range []string{"", "by=1"} {
		in := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := secrets.List(ctx, options)
			p.must(err)
			p.note(fmt.Sprintf("a page of %d, continued: %t, more: %t", options.Limit, options.Continue != "", list.Continue != ""), list.RemainingItemCount, nil)
			return list, nil
		})
		in.PageSize, in.PageBufferSize = 10, 0
		var seen []string
		err := in.EachListItem(p.ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
			seen = append(seen, o.(*corev1.Secret).Name)
			return nil
		})
		p.note("in all", seen, err)
	}
	_, err := secrets.List(p.ctx, metav1.ListOptions{Limit: 5, Continue: "nonsense"})
	p.note("a token that is none", nil, err)
	list, err := secrets.List(p.ctx, metav1.ListOptions{FieldSelector: "metadata.name=s-7,type=Opaque"})
	p.note("by fields", named(list.Items, (*corev1.Secret).GetName), err)
	_, err = secrets.List(p.ctx, metav1.ListOptions{FieldSelector: "data.k=v"})
	p.note("by a field that cannot be selected", nil, err)
}

// typedApply applies by two managers, who come to disagree.
func typedApply(p *program) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	intent := coreac.ConfigMap("a", p.namespace).WithLabels(map[string]string{"by": "program"}).WithData(map[string]string{"k": "v", "l": "w"})
	applied, err := maps.Apply(p.ctx, intent, metav1.ApplyOptions{FieldManager: "first"})
	p.note("applied", applied, err)
	rival := coreac.ConfigMap("a", p.namespace).WithData(map[string]string{"k": "other"})
	_, err = maps.Apply(p.ctx, rival, metav1.ApplyOptions{FieldManager: "second"})
	p.note("in conflict", nil, err)
	forced, err := maps.Apply(p.ctx, rival, metav1.ApplyOptions{FieldManager: "second", Force: true})
	p.note("forced", forced, err)
	mine, err := coreac.ExtractConfigMap(forced, "first")
	p.note("what the first has left", mine, err)
	given, err := maps.Apply(p.ctx, coreac.ConfigMap("a", p.namespace), metav1.ApplyOptions{FieldManager: "first"})
	p.note("given up", given.Data, err)

	container := coreac.Container().WithName("web").WithImage("nginx:1").WithPorts(coreac.ContainerPort().WithContainerPort(80))
	spec := appsac.DeploymentSpec().WithReplicas(0).
		WithSelector(metaac.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
		WithTemplate(coreac.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).WithSpec(coreac.PodSpec().WithContainers(container)))
	web, err := p.typed.AppsV1().Deployments(p.namespace).Apply(p.ctx, appsac.Deployment("web", p.namespace).WithSpec(spec), metav1.ApplyOptions{FieldManager: "first"})
	p.note("a Deployment", web, err)
	container.WithPorts(coreac.ContainerPort().WithContainerPort(81)).WithEnv(coreac.EnvVar().WithName("A").WithValue("b"))
	web, err = p.typed.AppsV1().Deployments(p.namespace).Apply(p.ctx, appsac.Deployment("web", p.namespace).WithSpec(spec), metav1.ApplyOptions{FieldManager: "first"})
	p.note("with another port", web.Spec.Template, err)
	part, err := appsac.ExtractDeployment(web, "first")
	p.note("what the first has of the Deployment", part, err)
}
