// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// process is an operator that answers, under a name and an identity.
func process(t *testing.T, operator, identity string) (port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(ops.OperatorHeader, operator)
		w.Header().Set(ops.ProcessHeader, identity)
		if r.URL.Query().Get("name") == "gone" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","message":"foos \"gone\" is not there","reason":"NotFound","code":404}`)
			return
		}
		fmt.Fprintf(w, `{"path":%q,"host":%q,"token":%q}`, r.URL.String(), r.Host, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// answer is what a process answers.
type answer struct{ Path, Host, Token string }

func TestAskingAtAnAddress(t *testing.T) {
	port := process(t, "foo", "foo-0_1")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	closed := "127.0.0.1:1"
	tests := map[string]struct {
		target Target
		want   string
	}{
		"it answers":             {Target{Address: "127.0.0.1:" + port}, "/debug/why?name=a+b"},
		"it is the right one":    {Target{Address: "127.0.0.1:" + port, Operator: "foo"}, "/debug/why?name=a+b"},
		"another operator":       {Target{Address: "127.0.0.1:" + port, Operator: "bar"}, `asking at 127.0.0.1:` + port + `: operator foo answers, not bar; the log of bar says its address in the line "starting", for --address`},
		"something else":         {Target{Address: other.Listener.Addr().String()}, "asking at " + other.Listener.Addr().String() + ": no operator of Handwerk answers, but something else: 404 Not Found 404 page not found"},
		"nobody":                 {Target{Address: closed}, `asking at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; no operator listens there: its log says its address in the line "starting" (debug)`},
		"a socket without file":  {Target{Address: "unix:/nowhere/s"}, `asking at unix:/nowhere/s: dial unix /nowhere/s: connect: no such file or directory; no operator listens there: its log says its address in the line "starting" (debug)`},
		"an address without end": {Target{Address: "localhost"}, "asking at localhost: want host:port, or unix:/path (--address)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, nil, "", test.target, "a b"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// ask asks, and returns the path that the process was asked, or the error.
func ask(t *testing.T, config *rest.Config, namespace string, target Target, name string) string {
	t.Helper()
	p, err := Open(t.Context(), config, namespace, target)
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	var got answer
	if err := p.Ask(t.Context(), "why", url.Values{"name": {name}}, &got); err != nil {
		return err.Error()
	}
	if got.Token != "" || got.Host != "localhost" {
		t.Errorf("the process got token %q and host %q", got.Token, got.Host)
	}
	return got.Path
}

// TestAnErrorOfTheProcessKeepsItsKind holds that a command can tell an object that is not known from other errors.
func TestAnErrorOfTheProcessKeepsItsKind(t *testing.T) {
	p, err := at("127.0.0.1:"+process(t, "foo", ""), "foo")
	if err != nil {
		t.Fatal(err)
	}
	err = p.Ask(t.Context(), "why", url.Values{"name": {"gone"}}, &answer{})
	if !apierrors.IsNotFound(err) || err.Error() != `foos "gone" is not there` {
		t.Errorf("got %v", err)
	}
}

// stand is an API server whose requests to forward ports a function answers.
func stand(t *testing.T, forward http.HandlerFunc) (*rest.Config, *server.Server, kubernetes.Interface) {
	t.Helper()
	cluster := server.New(server.Settings{})
	others := cluster.Client(nil, nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/portforward") {
			forward(w, r)
			return
		}
		others.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	config := &rest.Config{Host: front.URL, BearerToken: "of-the-user"}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return config, cluster, client
}

// bySPDY answers as an API server does that forwards by SPDY alone.
func bySPDY(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer of-the-user" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	cluster.PortForward(w, r)
}

// refused answers as an API server does when the user may not forward ports.
func refused(w http.ResponseWriter, _ *http.Request) {
	err := apierrors.NewForbidden(corev1.Resource("pods/portforward"), "foo-0", errors.New("User alice cannot do that"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	text, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: err.ErrStatus.Code, Reason: err.ErrStatus.Reason, Message: err.ErrStatus.Message, Status: metav1.StatusFailure})
	_, _ = w.Write(text)
}

// lease is the Lease of an operator.
func lease(namespace, operator, holder string, renewed time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: operator + "-leader", Namespace: namespace, Annotations: map[string]string{operator + ".handwerk.dev/scope": ""}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-renewed)))},
	}
}

// lifelong is the lock of mode life: the Pod owns it, and its annotation has a domain of the operator's own.
func lifelong(namespace, operator, pod string) *coordinationv1.Lease {
	l := lease(namespace, operator, pod, time.Hour)
	l.Annotations = map[string]string{operator + ".example.com/scope": ""}
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: "1"}}
	return l
}

// pod is a Pod of an operator that is asked on a port.
func pod(namespace, name string, phase corev1.PodPhase, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "operator", Args: args}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

// TestFindingTheLeader holds which process is asked, and the error if no process is found, or several are.
func TestFindingTheLeader(t *testing.T) {
	foo, bar := process(t, "foo", "foo-0_1"), process(t, "bar", "bar-0_1")
	on := func(port string) string { return "--debug-bind-address=127.0.0.1:" + port }
	fooLease, fooPod := lease("shop", "foo", "foo-0_1", time.Second), pod("shop", "foo-0", corev1.PodRunning, on(foo))
	barLease, barPod := lifelong("ops", "bar", "bar-0"), pod("ops", "bar-0", corev1.PodRunning, "--debug-bind-address", "localhost:"+bar)
	var other coordinationv1.Lease
	other.Name, other.Namespace = "kube-scheduler", "kube-system"
	tests := map[string]struct {
		objects []metav1.Object
		forward http.HandlerFunc
		target  Target
		want    string
	}{
		"the only operator":                           {[]metav1.Object{fooLease, fooPod, &other}, bySPDY, Target{}, "/debug/why?name=a"},
		"one by its name":                             {[]metav1.Object{fooLease, fooPod, barLease, barPod}, bySPDY, Target{Operator: "bar"}, "/debug/why?name=a"},
		"one by its namespace":                        {[]metav1.Object{fooLease, fooPod, barLease, barPod}, bySPDY, Target{Namespace: "shop"}, "/debug/why?name=a"},
		"one by its lock":                             {[]metav1.Object{fooLease, fooPod, barLease, barPod}, bySPDY, Target{Operator: "bar", Lock: "bar-leader"}, "/debug/why?name=a"},
		"one by its Pod":                              {[]metav1.Object{fooPod}, bySPDY, Target{Pod: "foo-0", Namespace: "shop"}, "/debug/why?name=a"},
		"several":                                     {[]metav1.Object{fooLease, barLease}, bySPDY, Target{}, "finding the operator: several are there: choose one by --operator and --operator-namespace: operator bar (Lease ops/bar-leader), operator foo (Lease shop/foo-leader)"},
		"one of two has stopped":                      {[]metav1.Object{fooLease, fooPod, lease("ops", "bar", "bar-0_1", time.Hour)}, bySPDY, Target{}, "/debug/why?name=a"},
		"none":                                        {[]metav1.Object{&other}, bySPDY, Target{Operator: "nope"}, "finding the operator: no Lease of operator nope is there, and none answers on 127.0.0.1:8082 of this machine: set --operator and --operator-namespace, or --pod for one without leader election, or --address"},
		"a Lease that nobody holds":                   {[]metav1.Object{lease("shop", "foo", "", time.Second)}, bySPDY, Target{}, "finding the operator: no process leads: Lease shop/foo-leader has no holder"},
		"a leader on another machine":                 {[]metav1.Object{lease("shop", "foo", "laptop_1", time.Second)}, bySPDY, Target{}, "finding the operator: laptop_1 leads, namespace shop has no Pod of that name, and it is not the process on 127.0.0.1:8082 of this machine: where it runs, use --address"},
		"a Pod that does not run":                     {[]metav1.Object{fooLease, pod("shop", "foo-0", corev1.PodPending)}, bySPDY, Target{}, "finding the operator: its Pod shop/foo-0 does not run: it is Pending"},
		"a Pod that is not there":                     {nil, bySPDY, Target{Pod: "foo-0"}, `finding the operator: reading its Pod default/foo-0: pods "foo-0" not found`},
		"a user without the right":                    {[]metav1.Object{fooLease, fooPod}, refused, Target{}, `forwarding port ` + foo + ` of Pod shop/foo-0: pods/portforward "foo-0" is forbidden: User alice cannot do that: it needs the rights to get and to create pods/portforward in namespace shop`},
		"an operator of another name behind the port": {[]metav1.Object{lease("shop", "foo", "foo-0_1", 0), pod("shop", "foo-0", corev1.PodRunning, on(bar))}, bySPDY, Target{}, `asking at port ` + bar + ` of Pod shop/foo-0: operator bar answers, not foo; the log of foo says its address in the line "starting", for --address`},
		"nobody behind the port":                      {[]metav1.Object{fooLease, pod("shop", "foo-0", corev1.PodRunning, on("1"))}, bySPDY, Target{}, `asking at port 1 of Pod shop/foo-0: failed to connect to localhost:1: dial tcp 127.0.0.1:1: connect: connection refused`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, _, client := stand(t, test.forward)
			create(t, client, test.objects)
			if diff := cmp.Diff(test.want, ask(t, config, "default", test.target, "a")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestALeaseThatIsNotRenewed holds that a Lease whose time is over, of a Pod that is gone, is said to be so.
func TestALeaseThatIsNotRenewed(t *testing.T) {
	config, _, client := stand(t, bySPDY)
	create(t, client, []metav1.Object{lease("shop", "foo", "foo-0_1", 2*time.Hour)})
	got := ask(t, config, "default", Target{}, "a")
	if !strings.HasPrefix(got, "finding the operator: no process leads: the Lease shop/foo-leader was last renewed at 2") || !strings.HasSuffix(got, ", by foo-0_1") {
		t.Errorf("got %s", got)
	}
}

// TestTheHomeOfAnOperator holds in which namespace an operator runs, as its Lease says, and what is said where none or several do.
func TestTheHomeOfAnOperator(t *testing.T) {
	tests := map[string]struct {
		leases []metav1.Object
		to     Target
		want   string
	}{
		"its Lease says it":                {[]metav1.Object{lease("shop", "foo", "foo-0_1", 0), lease("ops", "bar", "bar-0_1", 0)}, Target{Operator: "foo"}, "shop"},
		"one that nobody holds says it":    {[]metav1.Object{lease("shop", "foo", "", 0)}, Target{Operator: "foo"}, "shop"},
		"one for life says it":             {[]metav1.Object{lifelong("shop", "foo", "foo-0")}, Target{Operator: "foo"}, "shop"},
		"one of two was left behind":       {[]metav1.Object{lease("shop", "foo", "foo-0_1", 0), lease("old", "foo", "foo-0_1", time.Hour)}, Target{Operator: "foo"}, "shop"},
		"a lock with a name of its own":    {[]metav1.Object{lease("shop", "lock", "foo-0_1", 0)}, Target{Operator: "foo", Lock: "lock-leader"}, "shop"},
		"no Lease":                         {nil, Target{Operator: "foo"}, "finding operator foo: no Lease of this operator is there, which says where it runs: set --operator-namespace to the namespace of its Pods, or to default if it runs on this machine"},
		"Leases of other operators":        {[]metav1.Object{lease("ops", "bar", "bar-0_1", 0)}, Target{Operator: "foo"}, "finding operator foo: no Lease of this operator is there, which says where it runs: set --operator-namespace to the namespace of its Pods, or to default if it runs on this machine"},
		"two operators have the same name": {[]metav1.Object{lease("a", "foo", "foo-0_1", 0), lease("b", "foo", "foo-0_2", 0)}, Target{Operator: "foo"}, "finding operator foo: several are there: choose one by --operator and --operator-namespace: operator foo (Lease a/foo-leader), operator foo (Lease b/foo-leader)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, _, client := stand(t, bySPDY)
			create(t, client, test.leases)
			got, err := Home(t.Context(), config, "default", test.to)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLeasesOfOneNamespace holds that a user who may not list Leases in all namespaces is served in that of the context.
func TestLeasesOfOneNamespace(t *testing.T) {
	foo := process(t, "foo", "foo-0_1")
	config, cluster, client := stand(t, bySPDY)
	create(t, client, []metav1.Object{lease("shop", "foo", "foo-0_1", 0), pod("shop", "foo-0", corev1.PodRunning, "--debug-bind-address=127.0.0.1:"+foo)})
	cluster.Forbid(server.Rule{Verb: "list", Resource: coordinationv1.Resource("leases"), Namespace: "elsewhere"})
	if got := ask(t, config, "shop", Target{}, "a"); got != "/debug/why?name=a" {
		t.Errorf("in the right namespace: %s", got)
	}
	if got, err := Home(t.Context(), config, "shop", Target{Operator: "foo"}); got != "shop" {
		t.Errorf("its home: %q, %v", got, err)
	}
	cluster.Forbid(server.Rule{Verb: "list", Resource: coordinationv1.Resource("leases"), Namespace: "shop"})
	if got, err := Home(t.Context(), config, "shop", Target{Operator: "foo"}); err == nil || !strings.HasSuffix(err.Error(), ": set --operator-namespace to the namespace of its Pods, or to shop if it runs on this machine") {
		t.Errorf("its home where no Lease may be listed: %q, %v", got, err)
	}
	if got := ask(t, config, "shop", Target{}, "a"); !strings.HasSuffix(got, ": set --operator-namespace to a namespace where you may list leases.coordination.k8s.io, or --pod") {
		t.Errorf("in the wrong one: %s", got)
	}
}

func create(t *testing.T, client kubernetes.Interface, objects []metav1.Object) {
	t.Helper()
	for _, o := range objects {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		var err error
		switch o := o.(type) {
		case *coordinationv1.Lease:
			_, err = client.CoordinationV1().Leases(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		case *corev1.Pod:
			var made *corev1.Pod
			if made, err = client.CoreV1().Pods(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{}); err == nil {
				made.Status = o.Status
				_, err = client.CoreV1().Pods(o.Namespace).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestThePortOfAPod holds where the port of a Pod is read, and what is said of one that cannot be forwarded.
func TestThePortOfAPod(t *testing.T) {
	tests := map[string]struct {
		args []string
		env  string
		want string
	}{
		"the default":             {nil, "", "8082"},
		"that of the variable":    {nil, "localhost:9000", "9000"},
		"that of the flag":        {[]string{"run", "--debug-bind-address=127.0.0.1:9001"}, "localhost:9000", "9001"},
		"that of two words":       {[]string{"run", "--debug-bind-address", "[::1]:9002"}, "", "9002"},
		"it is off":               {[]string{"--debug-bind-address=0"}, "", "it cannot be asked: --debug-bind-address is 0"},
		"a socket":                {[]string{"--debug-bind-address=unix:/run/foo"}, "", "it is asked on a Unix socket (--debug-bind-address=unix:/run/foo): run this command in the Pod, with --address=unix:/run/foo"},
		"an address for all":      {[]string{"--debug-bind-address=:8082"}, "", "it is asked by TLS with a token (--debug-bind-address=:8082): curl it, or take an address on loopback, to which a port can be forwarded"},
		"a port that is found":    {[]string{"--debug-bind-address=127.0.0.1:0"}, "", `its port is not known (--debug-bind-address=127.0.0.1:0): its log says it in the line "starting"`},
		"an address that is none": {[]string{"--debug-bind-address=here"}, "", "--debug-bind-address=here is no address"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := pod("shop", "foo-0", corev1.PodRunning, test.args...)
			if test.env != "" {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: Variable, Value: test.env}}
			}
			got, err := portOf(p)
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestForwardingEndsWithItsContext holds that a proxy which does not answer holds up no command.
func TestForwardingEndsWithItsContext(t *testing.T) {
	hangs := make(chan struct{})
	config, _, client := stand(t, func(http.ResponseWriter, *http.Request) { <-hangs })
	t.Cleanup(func() { close(hangs) })
	create(t, client, []metav1.Object{pod("shop", "foo-0", corev1.PodRunning)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Open(ctx, config, "shop", Target{Pod: "foo-0"})
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
