// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/local"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// listen serves a full server and returns the configuration that its kubeconfig gives.
func listen(ctx context.Context, t *testing.T) (*local.Listener, *rest.Config) {
	t.Helper()
	l, err := local.Listen(ctx, server.New(server.Settings{Controllers: true, Authorize: true}), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := l.Kubeconfig("test")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return l, config
}

func TestTheKubeconfigIsThatOfTheAdministrator(t *testing.T) {
	_, config := listen(t.Context(), t)
	client := kubernetes.NewForConfigOrDie(config)
	list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 4 {
		t.Errorf("the namespaces are %v, error: %v", list, err)
	}
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || me.Status.UserInfo.Username != "kubernetes-admin" {
		t.Errorf("the user is %v, error: %v", me, err)
	}
}

func TestATokenHasTheRightsOfItsServiceAccount(t *testing.T) {
	_, config := listen(t.Context(), t)
	accounts := kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts("default")
	token, err := accounts.CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := func(token string) error {
		other := rest.AnonymousClientConfig(config)
		other.BearerToken = token
		_, err := kubernetes.NewForConfigOrDie(other).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	const want = `pods is forbidden: User "system:serviceaccount:default:default" cannot list resource "pods" in API group "" in the namespace "default"`
	if err := list(token.Status.Token); !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if err := list("nonsense"); !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown token gets %v", err)
	}
	if err := list(""); !apierrors.IsForbidden(err) {
		t.Errorf("no token gets %v", err)
	}
}

func TestAListenerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, config := listen(ctx, t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if out.ProtoMajor != 2 {
		t.Errorf("the protocol is %s", out.Proto)
	}
	cancel()
	l.Wait()
	if data, err := io.ReadAll(out.Body); err == nil && len(data) > 0 {
		t.Errorf("a watch reads %s", data)
	}
	if out, err := transport.RoundTrip(r); err == nil {
		out.Body.Close()
		t.Error("it serves after its end")
	}
}

func TestTheHandlerOfTheCallerAnswers(t *testing.T) {
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	l, err := local.Listen(t.Context(), server.New(server.Settings{}), "127.0.0.1:0", teapot)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: l.Certificate}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Body.Close()
	if out.StatusCode != http.StatusTeapot {
		t.Errorf("the response is %s", out.Status)
	}
}
