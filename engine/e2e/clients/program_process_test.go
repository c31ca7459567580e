// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

// elected lets two candidates lead one after the other.
func elected(p *program) {
	candidate := func(id string) (said chan string, resign func()) {
		said = make(chan string, 10)
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, p.namespace, "leader", p.typed.CoreV1(), p.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: id})
		p.must(err)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: time.Minute, RenewDeadline: 30 * time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { said <- id + " leads" },
				OnStoppedLeading: func() { said <- id + " leads no more" },
				OnNewLeader: func(leader string) {
					if leader != id {
						said <- id + " follows " + leader
					}
				},
			},
		})
		p.must(err)
		ctx, cancel := context.WithCancel(p.ctx)
		go elector.Run(ctx)
		return said, cancel
	}
	hear := func(from <-chan string) { p.note("said", receive(p, "a candidate", from), nil) }
	first, resign := candidate("first")
	hear(first)
	second, resignToo := candidate("second")
	hear(second)
	resign()
	hear(first)
	hear(second)
	held, err := p.typed.CoordinationV1().Leases(p.namespace).Get(p.ctx, "leader", metav1.GetOptions{})
	p.note("the Lease", held.Spec, err)
	resignToo()
	hear(second)
	released, err := p.typed.CoordinationV1().Leases(p.namespace).Get(p.ctx, "leader", metav1.GetOptions{})
	p.note("the released Lease", released.Spec, err)
}

// recorded records Events of both kinds, and repeats them.
func recorded(p *program) {
	about, err := p.typed.CoreV1().ConfigMaps(p.namespace).Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.must(err)
	about.APIVersion, about.Kind = "v1", "ConfigMap"

	old := record.NewBroadcaster(record.WithContext(p.ctx))
	defer old.Shutdown()
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: p.typed.CoreV1().Events(p.namespace)})
	by := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "program"})
	for range 3 {
		by.Event(about, corev1.EventTypeNormal, "Seen", "it is there")
	}
	counted := p.awaitEvent("reason=Seen", func(e *corev1.Event) bool { return e.Count == 3 })
	p.note("an Event", counted, nil)

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: p.typed.EventsV1()})
	defer broadcaster.Shutdown()
	p.must(broadcaster.StartRecordingToSinkWithContext(p.ctx))
	recorder := broadcaster.NewRecorder(scheme.Scheme, "program")
	record := func() {
		recorder.Eventf(about, nil, corev1.EventTypeWarning, "Repeated", "Looking", "it is there %s", "again")
	}
	record()
	p.note("an Event", p.awaitEvent("reason=Repeated", func(*corev1.Event) bool { return true }), nil)
	record() // the recorder pauses for ten seconds if this one overtakes the first
	p.note("a series", p.awaitEvent("reason=Repeated", func(e *corev1.Event) bool { return e.Series != nil }), nil)
	list, err := p.typed.EventsV1().Events(p.namespace).List(p.ctx, metav1.ListOptions{FieldSelector: "reason=Repeated"})
	p.must(err)
	p.note("by the newer API", named(list.Items, func(e *eventsv1.Event) string { return e.Reason + " " + e.Note }), nil)
}

// awaitEvent waits for an Event, and returns it without its name, which has a time in it.
func (p *program) awaitEvent(fields string, is func(*corev1.Event) bool) *corev1.Event {
	p.t.Helper()
	w, err := p.typed.CoreV1().Events(p.namespace).Watch(p.ctx, metav1.ListOptions{FieldSelector: fields})
	p.must(err)
	defer w.Stop()
	for e := range w.ResultChan() {
		if found, ok := e.Object.(*corev1.Event); ok && e.Type != watch.Deleted && is(found) {
			found.Name = ""
			return found
		}
	}
	p.t.Fatalf("waiting for an Event with %s: the watch has ended", fields)
	return nil
}

// permitted acts as a ServiceAccount, which gets a right.
func permitted(p *program) {
	accounts := p.typed.CoreV1().ServiceAccounts(p.namespace)
	_, err := accounts.Create(p.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	p.must(err)
	token, err := accounts.CreateToken(p.ctx, "robot", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}, metav1.CreateOptions{})
	p.must(err)
	p.note("the time of its token", *token.Spec.ExpirationSeconds, nil)
	config := rest.AnonymousClientConfig(p.config)
	config.BearerToken = token.Status.Token
	robot := kubernetes.NewForConfigOrDie(config)
	self, err := robot.AuthenticationV1().SelfSubjectReviews().Create(p.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	p.must(err)
	p.note("who it is", self.Status.UserInfo.Username, nil)
	p.note("its groups", self.Status.UserInfo.Groups, nil)
	_, err = robot.CoreV1().ConfigMaps(p.namespace).List(p.ctx, metav1.ListOptions{})
	p.note("without a right", nil, err)
	p.note("it may", p.may(robot, "list", "configmaps"), nil)

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}
	_, err = p.typed.RbacV1().Roles(p.namespace).Create(p.ctx, role, metav1.CreateOptions{})
	p.must(err)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: p.namespace}},
	}
	bound, err := p.typed.RbacV1().RoleBindings(p.namespace).Create(p.ctx, binding, metav1.CreateOptions{})
	p.note("bound", bound, err)
	// A real server notices the binding a little later.
	soon := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 20}
	p.must(retry.OnError(soon, apierrors.IsForbidden, func() error {
		_, err := robot.CoreV1().ConfigMaps(p.namespace).List(p.ctx, metav1.ListOptions{})
		return err
	}))
	p.note("it may", p.may(robot, "list", "configmaps"), nil)
	p.note("it may not", p.may(robot, "create", "configmaps"), nil)
	_, err = robot.CoreV1().ConfigMaps(p.namespace).Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.note("another verb", nil, err)
	_, err = robot.CoreV1().Nodes().List(p.ctx, metav1.ListOptions{})
	p.note("another scope", nil, err)
	config = rest.CopyConfig(p.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"developers"}}
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(p.namespace).Get(p.ctx, "s", metav1.GetOptions{})
	p.note("in the name of another", nil, err)
	config.BearerToken, config.CertData, config.KeyData, config.CertFile, config.KeyFile = "nonsense", nil, nil, "", ""
	config.Impersonate = rest.ImpersonationConfig{}
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(p.namespace).Get(p.ctx, "s", metav1.GetOptions{})
	p.note("with a token that is none", nil, err)
}

// may asks whether a client may do something in the namespace.
func (p *program) may(client kubernetes.Interface, verb, resource string) bool {
	p.t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.namespace, Verb: verb, Resource: resource},
	}}
	out, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(p.ctx, review, metav1.CreateOptions{})
	p.must(err)
	return out.Status.Allowed
}
