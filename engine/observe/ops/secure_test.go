// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reviews are the answers of an API server: token alice is alice's, and so on; who is in may gets /metrics.
type reviews struct {
	mu    sync.Mutex
	may   map[string]bool
	fault error
	// asked are the tokens that were asked about, paths the questions of access.
	asked, paths []string
}

// tokens and accesses are the two resources of [reviews].
type (
	tokens   reviews
	accesses reviews
)

func (v *tokens) Create(_ context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, r.Spec.Token)
	if v.fault != nil {
		return nil, v.fault
	}
	if !strings.HasPrefix(r.Spec.Token, "bad") {
		r.Status.Authenticated = true
		r.Status.User = authenticationv1.UserInfo{Username: r.Spec.Token, Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"a"}}}
	}
	return r, nil
}

func (v *accesses) Create(_ context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := r.Spec
	v.paths = append(v.paths, fmt.Sprintf("%s %s %s %s", s.User, s.Groups, s.Extra, *s.NonResourceAttributes))
	r.Status.Allowed = v.may[s.User]
	return r, nil
}

// request sends a request through a gate, and returns the answer's status and text.
func request(g *gate, from, path, authorization string) string {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = from + ":1"
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	g.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "numbers") })).ServeHTTP(w, r)
	return strings.TrimSpace(fmt.Sprintln(w.Code, w.Body.String(), w.Header().Get("WWW-Authenticate")+w.Header().Get("Retry-After")))
}

func gateOf(v *reviews, log logr.Logger) *gate {
	return newGate(&Secure{Tokens: (*tokens)(v), Access: (*accesses)(v)}, log)
}

// TestWhoGetsTheMetrics holds who gets what is protected, and what the others read.
func TestWhoGetsTheMetrics(t *testing.T) {
	tests := map[string]struct{ header, want string }{
		"an account that may get the path":          {"Bearer alice", "200 numbers"},
		"one that may not":                          {"Bearer bob", "403 bob may not get /metrics: bind a ClusterRole with this nonResourceURL"},
		"a token that the API server does not know": {"Bearer bad", "401 the API server does not know this token\n Bearer"},
		"no token":       {"", "401 send the bearer token of an account that may get /metrics\n Bearer"},
		"an empty token": {"Bearer  ", "401 send the bearer token of an account that may get /metrics\n Bearer"},
		"a password":     {"Basic YTpi", "401 send the bearer token of an account that may get /metrics\n Bearer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := &reviews{may: map[string]bool{"alice": true}}
			if got := request(gateOf(v, logr.Discard()), "10.0.0.1", "/metrics", tt.header); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestWhatTheAPIServerIsAsked holds that access is asked for the user with all that the API server knows of them.
func TestWhatTheAPIServerIsAsked(t *testing.T) {
	v := &reviews{}
	request(gateOf(v, logr.Discard()), "10.0.0.1", "/readyz", "Bearer alice")
	if diff := cmp.Diff([]string{"alice [g] map[pod:[a]] {/readyz get}"}, v.paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHowLongAnAnswerCounts holds that the API server is asked once in a while for each token, and that a right that is given or
// taken away shows.
func TestHowLongAnAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &reviews{may: map[string]bool{"alice": true}}
		g := gateOf(v, logr.Discard())
		get := func(token, want string, asked int) {
			t.Helper()
			if got := request(g, "10.0.0.1", "/metrics", "Bearer "+token); !strings.HasPrefix(got, want) || len(v.asked) != asked {
				t.Errorf("got %s after %d questions, want %s after %d", got, len(v.asked), want, asked)
			}
		}
		get("alice", "200", 1)
		get("bob", "403", 2)
		time.Sleep(deniedFor - time.Second)
		get("alice", "200", 2)
		get("bob", "403", 2)
		v.may = map[string]bool{"bob": true}
		time.Sleep(time.Second)
		get("bob", "200", 3)
		get("alice", "200", 3)
		time.Sleep(allowedFor - deniedFor)
		get("alice", "403", 4)
	})
}

// TestInventedTokens holds that tokens that were not issued neither fill the memory, nor push out the answers for real
// ones, nor have the API server asked without bound, nor keep clients of other addresses out.
func TestInventedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &reviews{may: map[string]bool{"alice": true, "carol": true}}
		g := gateOf(v, logr.Discard())
		request(g, "10.0.0.1", "/metrics", "Bearer alice")
		for i := range 4 * mostAnswers {
			time.Sleep(time.Millisecond)
			request(g, "10.0.0.2", "/metrics", fmt.Sprint("Bearer bad", i))
		}
		if most := 1 + askedAtOnce + 2*askedPerSecond; len(v.asked) > most {
			t.Errorf("the API server was asked %d times, want at most %d", len(v.asked), most)
		}
		before := len(v.asked)
		if got := request(g, "10.0.0.2", "/metrics", "Bearer bad"); !strings.HasPrefix(got, "429 ") || !strings.HasSuffix(got, " 1") {
			t.Errorf("one more invented token: %s", got)
		}
		for from, token := range map[string]string{"10.0.0.1": "alice", "10.0.0.3": "carol"} {
			if got := request(g, from, "/metrics", "Bearer "+token); !strings.HasPrefix(got, "200 ") {
				t.Errorf("%s: %s", token, got)
			}
		}
		if len(v.asked) != before+1 {
			t.Errorf("the API server was asked %d times more, want once: alice is known", len(v.asked)-before)
		}
		for i := range 4 * mostAddresses {
			request(g, fmt.Sprint("10.1.", i/250, ".", i%250), "/metrics", fmt.Sprint("Bearer bad", i))
		}
		if len(g.denied) > mostAnswers || len(g.asking) > mostAddresses {
			t.Errorf("%d denials and %d addresses are kept", len(g.denied), len(g.asking))
		}
		if got := request(g, "10.0.0.1", "/metrics", "Bearer alice"); !strings.HasPrefix(got, "200 ") {
			t.Errorf("alice: %s", got)
		}
	})
}

// TestTheAPIServerCannotBeAsked holds that a failure refuses the request, is not remembered, and is logged once.
func TestTheAPIServerCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		v := &reviews{may: map[string]bool{"alice": true}, fault: errors.New("forbidden")}
		g := gateOf(v, log)
		for range 3 {
			if got := request(g, "10.0.0.1", "/metrics", "Bearer alice"); !strings.HasPrefix(got, "503 ") {
				t.Errorf("got %s", got)
			}
		}
		v.fault = nil
		if got := request(g, "10.0.0.1", "/metrics", "Bearer alice"); !strings.HasPrefix(got, "200 ") {
			t.Errorf("got %s", got)
		}
		const want = `"error"="asking who sends a token (create tokenreviews.authentication.k8s.io): forbidden"`
		if len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("the log has %q, want one line with %s", lines, want)
		}
	})
}

// health is the checks of /readyz.
type health []Check

func (h health) Ready() []Check { return h }

func (health) Healthy() []Check { return nil }

// TestSecureEndpoints holds what an operator serves with protection: /metrics and what checks say by TLS to who may get it, and to
// everybody whether the checks pass.
func TestSecureEndpoints(t *testing.T) {
	v := &reviews{may: map[string]bool{"alice": true}}
	s := NewServer(Settings{
		HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", Metrics: NewMetrics(), Log: logr.Discard(),
		Health: health{{Name: "started", Message: "web waits"}},
		Secure: &Secure{Tokens: (*tokens)(v), Access: (*accesses)(v)},
	})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	tests := map[string]struct {
		url, token string
		status     int
		has        string
	}{
		"metrics with a right":           {"https://" + s.MetricsAddress() + "/metrics", "alice", 200, "# TYPE go_goroutines gauge"},
		"metrics without one":            {"https://" + s.MetricsAddress() + "/metrics", "bob", 403, "bob may not get /metrics"},
		"metrics without TLS":            {"http://" + s.MetricsAddress() + "/metrics", "alice", 400, "HTTPS server"},
		"checks with a right":            {"https://" + s.MetricsAddress() + "/readyz?verbose", "alice", 200, "[+]started ok: web waits"},
		"checks without one":             {"https://" + s.MetricsAddress() + "/readyz?verbose", "", 401, "send the bearer token"},
		"checks for the kubelet":         {"http://" + s.HealthAddress() + "/readyz", "", 200, "ok"},
		"checks from the Pod itself":     {"http://" + s.HealthAddress() + "/readyz?verbose", "", 200, "[+]started ok: web waits"},
		"what is not there, with rights": {"https://" + s.MetricsAddress() + "/debug/pprof/", "alice", 404, "not found"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := fetch(t, client, tt.url, tt.token)
			if status != tt.status || !strings.Contains(body, tt.has) {
				t.Errorf("got %d %.300s\nwant %d with %q", status, body, tt.status, tt.has)
			}
		})
	}
}

func fetch(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body strings.Builder
	if err := resp.Write(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body.String()
}

// TestChecksFromOutsideAreBrief holds that another Pod does not read the names in checks, and the Pod itself does.
func TestChecksFromOutsideAreBrief(t *testing.T) {
	p := &probe{name: readyz, brief: true, health: health{
		{Name: "started", Message: "web waits", State: Fail}, {Name: "waiting/foos.v1.example.com/shop/web", OfObject: true},
	}}
	mux := http.NewServeMux()
	p.register(mux)
	for from, want := range map[string]string{
		"10.0.0.1": "[-]started failed\nreadyz check failed\n",
		"::1":      "[-]started failed: web waits\n[+]waiting/foos.v1.example.com/shop/web ok\nreadyz check failed\n",
	} {
		r := httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil)
		r.RemoteAddr = "[" + from + "]:1"
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Body.String() != want {
			t.Errorf("from %s: %q, want %q", from, w.Body.String(), want)
		}
	}
}

// TestCertificateFilesAreReadAgain holds that a certificate which was replaced is used without a restart, and that the one before
// goes on while the files cannot be used.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var lines []string
		c := &certificates{certFile: filepath.Join(dir, "tls.crt"), keyFile: filepath.Join(dir, "tls.key"),
			log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
		if _, err := c.get(nil); err == nil || !strings.Contains(err.Error(), "reading the certificate: open ") {
			t.Errorf("without files: %v", err)
		}
		one, two := pair(t), pair(t)
		write("tls.crt", one.cert)
		write("tls.key", one.key)
		serves := func(want files) {
			t.Helper()
			time.Sleep(filesLookedAt)
			got, err := c.get(nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := asPEM("CERTIFICATE", got.Certificate[0]); text != want.cert {
				t.Errorf("it serves another certificate")
			}
		}
		serves(one)
		write("tls.crt", two.cert)
		serves(one)
		if len(lines) != 1 || !strings.Contains(lines[0], "private key does not match public key") {
			t.Errorf("the log has %q", lines)
		}
		write("tls.key", two.key)
		serves(two)
		if err := os.Remove(c.certFile); err != nil {
			t.Fatal(err)
		}
		serves(two)
	})
}

// TestAProcessSignsItsCertificate holds for whom the certificate is that a process makes, and that the next one comes in time.
func TestAProcessSignsItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &certificates{}
		leaf := func() *x509.Certificate {
			t.Helper()
			got, err := c.get(nil)
			if err != nil {
				t.Fatal(err)
			}
			cert, err := x509.ParseCertificate(got.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := cert.VerifyHostname("localhost"); err != nil {
				t.Error(err)
			}
			if now := time.Now(); now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
				t.Errorf("it is valid from %s to %s", cert.NotBefore, cert.NotAfter)
			}
			return cert
		}
		first := leaf()
		if again := leaf(); !first.Equal(again) {
			t.Error("the second client gets another certificate")
		}
		time.Sleep(selfSignedLife/2 + time.Minute)
		if later := leaf(); first.Equal(later) {
			t.Error("it is never renewed")
		}
	})
}

type files struct{ cert, key string }

// pair makes a certificate and its key.
func pair(t *testing.T) files {
	t.Helper()
	made, err := selfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return files{asPEM("CERTIFICATE", made.Certificate[0]), asPEM("PRIVATE KEY", key)}
}

func asPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
