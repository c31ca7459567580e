// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// configOf is the config by which another process reaches a sandbox.
func configOf(t *testing.T, s *sandbox.Sandbox) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestAnotherProcessControlsASandbox(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	config := configOf(t, s.Sandbox)
	send := func(verb sandbox.ControlVerb, c sandbox.Control) {
		t.Helper()
		out, err := sandbox.Send(t.Context(), config, verb, c)
		if err != nil || !out.Now.Equal(s.Clock().Now()) {
			t.Fatalf("%s: %v, it is %s", verb, err, out.Now)
		}
	}
	status := s.deploy(web())
	send(sandbox.ControlFail, sandbox.Control{Workload: "deployments/web", Reason: "Unready"})
	if n := status().ReadyReplicas; n != 0 {
		t.Errorf("%d Pods are ready", n)
	}
	send(sandbox.ControlRelease, sandbox.Control{Workload: "deployments/web"})
	if n := status().ReadyReplicas; n != 2 {
		t.Errorf("%d Pods are ready after the release", n)
	}
	before := s.Clock().Now()
	send(sandbox.ControlAdvance, sandbox.Control{Duration: metav1.Duration{Duration: time.Hour}})
	if passed := s.Clock().Now().Sub(before); passed != time.Hour {
		t.Errorf("%s have passed", passed)
	}
}

func TestPatchesFailAsOftenAsTheyAreToldTo(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	s.deploy(web())()
	requests := &sandbox.Fault{Verb: "patch", Resource: "deploy", Code: http.StatusConflict, Times: 3}
	if _, err := sandbox.Send(t.Context(), configOf(t, s.Sandbox), sandbox.ControlFail, sandbox.Control{Request: requests}); err != nil {
		t.Fatal(err)
	}
	patch := func() error {
		_, err := client(t, s.Sandbox).AppsV1().Deployments("default").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
		return err
	}
	for n := range 3 {
		if err := patch(); !apierrors.IsConflict(err) {
			t.Errorf("patch %d: %v", n+1, err)
		}
	}
	if err := patch(); err != nil {
		t.Errorf("the fourth patch: %v", err)
	}
}

// TestOnlyTheAdministratorControlsASandbox sends controls as others.
func TestOnlyTheAdministratorControlsASandbox(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	client := kubernetes.NewForConfigOrDie(s.Config())
	all := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "default"}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), all, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*rest.Config)
		says   string
	}{
		"a ServiceAccount with all rights": {func(c *rest.Config) { c.BearerToken = token.Status.Token }, "system:serviceaccount:default:default may not control the sandbox"},
		"an unknown token":                 {func(c *rest.Config) { c.BearerToken = "x" }, "the sandbox is controlled with the token of its kubeconfig alone"},
		"nobody":                           {func(c *rest.Config) { c.BearerToken = "" }, "the sandbox is controlled with the token of its kubeconfig alone"},
		"somebody else by impersonation":   {func(c *rest.Config) { c.Impersonate.UserName = "alice" }, "the sandbox is controlled with the token of its kubeconfig alone"},
	} {
		config := configOf(t, s.Sandbox)
		c.change(config)
		_, err := sandbox.Send(t.Context(), config, sandbox.ControlHold, sandbox.Control{Workload: "deployments/web"})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
	if status := s.deploy(web()); status().ReadyReplicas != 2 {
		t.Errorf("it was held: %+v", status())
	}
}

func TestControlsThatCannotBe(t *testing.T) {
	t.Parallel()
	config := configOf(t, sandbox.New(t, sandbox.Options{}))
	requests := func(f sandbox.Fault) sandbox.Control { return sandbox.Control{Request: &f} }
	for _, c := range []struct {
		verb    sandbox.ControlVerb
		control sandbox.Control
		says    string
	}{
		{"pause", sandbox.Control{}, "a sandbox cannot pause, only advance, hold, fail, delay and release"},
		{sandbox.ControlAdvance, sandbox.Control{}, "advancing the clock: " + sandbox.ErrRealClock.Error()},
		{sandbox.ControlFail, sandbox.Control{Workload: "pods/a"}, "failing pods/a: a reason is required, such as CrashLoopBackOff"},
		{sandbox.ControlDelay, sandbox.Control{Workload: "pods/a", Duration: metav1.Duration{Duration: -1}}, "delaying pods/a: -1ns is less than no time"},
		{sandbox.ControlFail, requests(sandbox.Fault{Verb: "path", Resource: "pods"}), `no request has the verb "path", only get, list, watch, create, update, patch, delete, deletecollection`},
		{sandbox.ControlFail, requests(sandbox.Fault{Verb: "patch", Resource: "pod5"}), `the sandbox serves no resource "pod5"`},
		{sandbox.ControlFail, requests(sandbox.Fault{Verb: "patch", Resource: "pods", Code: 200}), "200 is no status of a failure, which is 400 to 599"},
		{sandbox.ControlFail, requests(sandbox.Fault{Verb: "patch", Resource: "pods", Times: -1}), "requests cannot fail -1 times"},
		{sandbox.ControlRelease, requests(sandbox.Fault{Verb: "patch", Resource: "pods"}), "no such requests fail"},
	} {
		_, err := sandbox.Send(t.Context(), config, c.verb, c.control)
		if fmt.Sprint(err) != c.says {
			t.Errorf("%s %+v: %v, want %s", c.verb, c.control, err, c.says)
		}
	}
}
