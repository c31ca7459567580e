// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// requests records those of a client.
type requests struct {
	mu   sync.Mutex
	next http.RoundTripper
	sent []string
}

// changing are the values of a query that are different at each run.
var changing = regexp.MustCompile(`(resourceVersion|timeoutSeconds)=\d+`)

// RoundTrip records and sends a request.
func (r *requests) RoundTrip(h *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.sent = append(r.sent, h.Method+" "+changing.ReplaceAllString(h.URL.RequestURI(), "$1=<n>"))
	r.mu.Unlock()
	return r.next.RoundTrip(h)
}

// recording returns a config whose requests are recorded.
func (p *program) recording() (*rest.Config, *requests) {
	r, out := &requests{}, rest.CopyConfig(p.config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r
	})
	return out, r
}

// handler sends what an informer says of objects with names to a channel.
func handler(to chan<- string) cache.ResourceEventHandler {
	say := func(what string, o any) {
		object := o.(metav1.Object)
		to <- fmt.Sprintf("%s %s %s", what, object.GetName(), object.GetAnnotations()["step"])
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, first bool) {
			if say("added", o); first {
				to <- "it was in the first list"
			}
		},
		UpdateFunc: func(_, o any) { say("updated", o) },
		DeleteFunc: func(o any) { say("deleted", o) },
	}
}

// informed follows ConfigMaps with a shared informer. It also shows by which requests.
func informed(p *program) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	_, err := maps.Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.must(err)
	config, sent := p.recording()
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0,
		informers.WithNamespace(p.namespace), informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = own.LabelSelector }))
	seen := make(chan string, 100)
	informer := factory.Core().V1().ConfigMaps()
	registered, err := informer.Informer().AddEventHandler(handler(seen))
	p.must(err)
	factory.Start(p.ctx.Done())
	if !cache.WaitForCacheSync(p.ctx.Done(), registered.HasSynced) {
		p.t.Fatal("the informer does not come to know the objects")
	}
	step := func(n string, do func() error) {
		p.must(do())
		p.note("seen", receive(p, n, seen), nil)
	}
	step("the first object", func() error { return nil })
	step("that it was in the first list", func() error { return nil })
	step("a creation", func() error { _, err := maps.Create(p.ctx, configMap("b", "v"), metav1.CreateOptions{}); return err })
	step("a patch", func() error {
		_, err := maps.Patch(p.ctx, "b", types.MergePatchType, []byte(`{"metadata":{"annotations":{"step":"2"}}}`), metav1.PatchOptions{})
		return err
	})
	found, err := informer.Lister().ConfigMaps(p.namespace).Get("b")
	p.note("in the lister", found, err)
	_, err = informer.Lister().ConfigMaps(p.namespace).Get("c")
	p.note("not in the lister", nil, err)
	step("the loss of the label", func() error {
		_, err := maps.Patch(p.ctx, "b", types.MergePatchType, []byte(`{"metadata":{"labels":null,"annotations":{"step":"3"}}}`), metav1.PatchOptions{})
		return err
	})
	step("a deletion", func() error { return maps.Delete(p.ctx, "a", metav1.DeleteOptions{}) })
	all, err := informer.Lister().List(labels.Everything())
	p.note("left", all, err)
	sent.mu.Lock()
	defer sent.mu.Unlock()
	p.note("requests", slices.Clone(sent.sent), nil)
}

// informedInForms follows objects with informers of the typed, the dynamic and the metadata client, one after the other.
func informedInForms(p *program) {
	gvr := corev1.SchemeGroupVersion.WithResource("secrets")
	meta := metadata.NewForConfigOrDie(p.config)
	for form, informer := range map[string]cache.SharedIndexInformer{
		"typed":    informers.NewSharedInformerFactoryWithOptions(p.typed, 0, informers.WithNamespace(p.namespace)).Core().V1().Secrets().Informer(),
		"dynamic":  dynamicinformer.NewFilteredDynamicInformer(p.dynamic, gvr, p.namespace, 0, cache.Indexers{}, nil).Informer(),
		"metadata": metadatainformer.NewFilteredMetadataInformer(meta, gvr, p.namespace, 0, cache.Indexers{}, nil).Informer(),
	} {
		seen := make(chan string, 100)
		registered, err := informer.AddEventHandler(handler(seen))
		p.must(err)
		go informer.RunWithContext(p.ctx)
		if !cache.WaitForCacheSync(p.ctx.Done(), registered.HasSynced) {
			p.t.Fatalf("the %s informer does not come to know the objects", form)
		}
		secrets := p.typed.CoreV1().Secrets(p.namespace)
		_, err = secrets.Create(p.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
		p.must(err)
		_, err = secrets.Patch(p.ctx, "s", types.MergePatchType, []byte(`{"metadata":{"annotations":{"step":"2"}}}`), metav1.PatchOptions{})
		p.must(err)
		p.must(secrets.Delete(p.ctx, "s", metav1.DeleteOptions{}))
		for _, want := range []string{"added s ", "updated s 2", "deleted s 2"} {
			if got := receive(p, form, seen); got != want {
				p.t.Errorf("the %s informer says %q, want %q", form, got, want)
			}
		}
	}
	p.note("all informers", "agree", nil)
}

// deployment is one of two Pods.
func deployment() *appsv1.Deployment {
	app := map[string]string{"app": "web"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}}},
	}}
}

// untilAvailable waits with the tools for that.
func untilAvailable(p *program) {
	web, err := p.typed.AppsV1().Deployments(p.namespace).Create(p.ctx, deployment(), metav1.CreateOptions{})
	p.must(err)
	source := cache.NewListWatchFromClient(p.typed.AppsV1().RESTClient(), "deployments", p.namespace, fields.OneTermEqualSelector("metadata.name", "web"))
	available := func(n int32) watchtools.ConditionFunc {
		return func(e watch.Event) (bool, error) {
			d := e.Object.(*appsv1.Deployment)
			return d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n && d.Status.Replicas == n, nil
		}
	}
	last, err := watchtools.Until(p.ctx, web.ResourceVersion, source, available(2))
	p.must(err)
	p.note("it is available", last.Object.(*appsv1.Deployment).Spec, nil)
	_, err = p.typed.AppsV1().Deployments(p.namespace).Patch(p.ctx, "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
	p.must(err)
	last, err = watchtools.UntilWithSync(p.ctx, source, &appsv1.Deployment{}, nil, available(1))
	p.must(err)
	p.note("it is smaller", last.Object.(*appsv1.Deployment).Status.ReadyReplicas, nil)
	p.must(p.typed.AppsV1().Deployments(p.namespace).Delete(p.ctx, "web", metav1.DeleteOptions{}))
	pods := cache.NewListWatchFromClient(p.typed.CoreV1().RESTClient(), "pods", p.namespace, fields.Everything())
	none := func(store cache.Store) (bool, error) { return len(store.List()) == 0, nil }
	_, err = watchtools.UntilWithSync(p.ctx, pods, &corev1.Pod{}, none, func(e watch.Event) (bool, error) {
		list, err := p.typed.CoreV1().Pods(p.namespace).List(p.ctx, metav1.ListOptions{})
		return e.Type == watch.Deleted && len(list.Items) == 0, err
	})
	p.note("its Pods have gone", nil, err)
}

// scaled scales by the typed client and by that which scales all kinds.
func scaled(p *program) {
	web := deployment()
	web.Spec.Paused = true
	deployments := p.typed.AppsV1().Deployments(p.namespace)
	_, err := deployments.Create(p.ctx, web, metav1.CreateOptions{})
	p.must(err)
	got, err := deployments.GetScale(p.ctx, "web", metav1.GetOptions{})
	p.must(err)
	p.note("its scale", got.Spec, nil)
	got.ResourceVersion, got.Spec.Replicas = "", 3
	changed, err := deployments.UpdateScale(p.ctx, "web", got, metav1.UpdateOptions{})
	p.note("scaled", changed.Spec, err)
	client := discovery.NewDiscoveryClientForConfigOrDie(p.config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	scales, err := scale.NewForConfig(p.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client))
	p.must(err)
	resource := appsv1.SchemeGroupVersion.WithResource("deployments")
	patched, err := scales.Scales(p.namespace).Patch(p.ctx, resource, "web", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	p.note("scaled by a patch", patched.Spec, err)
	_, err = deployments.UpdateScale(p.ctx, "web", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: p.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: -1}}, metav1.UpdateOptions{})
	p.note("below nothing", nil, err)
	_, err = deployments.GetScale(p.ctx, "missing", metav1.GetOptions{})
	p.note("without a Deployment", nil, err)
	kept, err := deployments.Get(p.ctx, "web", metav1.GetOptions{})
	p.must(err)
	p.note("the managers of its replicas", managers(kept), nil)
}

// managers are those of an object, but for its controllers.
func managers(o runtime.Object) (out []string) {
	for _, entry := range o.(metav1.Object).GetManagedFields() {
		if entry.Manager != "kube-controller-manager" {
			out = append(out, fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, entry.Subresource, entry.FieldsV1))
		}
	}
	return out
}
