// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
)

// The flags that set how metrics are protected.
const (
	SecureFlag   = "metrics-secure"
	CertFileFlag = "metrics-tls-cert-file"
	KeyFileFlag  = "metrics-tls-private-key-file"
)

// Secure protects the endpoint of metrics by TLS and by bearer tokens. The API server reviews a token and whether its user
// may get the path (by a ClusterRole with the nonResourceURL /metrics). The operator's account needs the right to create
// tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io.
type Secure struct {
	// Tokens and Access send the reviews. Required.
	Tokens authentication.TokenReviewInterface
	Access authorization.SubjectAccessReviewInterface
	// CertFile and KeyFile have the certificate and its key as PEM. They are read again when they change. Without them the
	// certificate is self-signed.
	CertFile, KeyFile string
}

const (
	// allowedFor and deniedFor are how long an answer of the API server is kept. So a right is lost at most allowedFor after
	// it was revoked, and holds at most deniedFor after it was granted.
	allowedFor = time.Minute
	deniedFor  = 10 * time.Second
	// mostAnswers is the greatest number of answers of each kind that are kept. So invented tokens cannot fill the memory,
	// or push out the answers for real ones.
	mostAnswers = 256
	// reviewTime is the timeout of a review.
	reviewTime = 5 * time.Second
	// askedAtOnce and askedPerSecond limit the reviews of new tokens from one address.
	askedAtOnce    = 10
	askedPerSecond = 1
	// mostAddresses is the greatest number of addresses with a limit of their own.
	mostAddresses = 1024
)

// gate lets a request through if its sender may get the path.
type gate struct {
	secure *Secure
	log    logr.Logger

	mu      sync.Mutex
	allowed map[question]time.Time // until when
	denied  map[question]denial
	asking  map[string]flowcontrol.RateLimiter // by address
	failed  string                             // the text of the failure that was logged last
}

// question identifies a review. It does not have the token itself.
type question struct {
	token [sha256.Size]byte
	path  string
}

type denial struct {
	refusal refusal
	until   time.Time
}

// refusal is the answer to a request that does not get through.
type refusal struct {
	status int
	text   string
}

func newGate(s *Secure, log logr.Logger) *gate {
	return &gate{secure: s, log: log, allowed: map[question]time.Time{}, denied: map[question]denial{}, asking: map[string]flowcontrol.RateLimiter{}}
}

// guard returns a handler that passes requests on to next if their sender may get the path.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token = strings.TrimSpace(token); !found || token == "" {
			refuse(w, unknown("send the bearer token of an account that may get "+r.URL.Path))
			return
		}
		if no := g.judge(r, token); no != nil {
			refuse(w, *no)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, no refusal) {
	switch no.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	answer(w, no.status, no.text+"\n")
}

func unknown(text string) refusal { return refusal{http.StatusUnauthorized, text} }

// judge returns why the sender of a request may not get its path; nil if it may.
func (g *gate) judge(r *http.Request, token string) *refusal {
	asked := question{sha256.Sum256([]byte(token)), r.URL.Path}
	if known, no := g.known(asked); known {
		return no
	}
	if !g.mayAsk(host(r.RemoteAddr)) {
		return &refusal{http.StatusTooManyRequests, "too many tokens from this address that are not known yet"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	no, err := g.ask(ctx, token, asked.path)
	if err != nil {
		g.report(r.Context(), err)
		return &refusal{http.StatusServiceUnavailable, "the operator could not ask the API server who you are; its log says why"}
	}
	g.keep(asked, no)
	return no
}

// ask reviews a token, and whether its user may get the path.
func (g *gate) ask(ctx context.Context, token, path string) (*refusal, error) {
	review, err := g.secure.Tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking who sends a token (create tokenreviews.authentication.k8s.io): %w", err)
	}
	if !review.Status.Authenticated {
		no := unknown("the API server does not know this token")
		return &no, nil
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	access, err := g.secure.Access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking what %s may do (create subjectaccessreviews.authorization.k8s.io): %w", user.Username, err)
	}
	if !access.Status.Allowed {
		return &refusal{http.StatusForbidden, fmt.Sprintf("%s may not get %s: bind a ClusterRole with this nonResourceURL", user.Username, path)}, nil
	}
	return nil, nil
}

// known returns the answer to an earlier review, if it is kept and still valid.
func (g *gate) known(asked question) (bool, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Before(g.allowed[asked]) {
		return true, nil
	}
	if d, ok := g.denied[asked]; ok && now.Before(d.until) {
		return true, &d.refusal
	}
	return false, nil
}

// keep remembers an answer. If there is no room, the next request needs another review.
func (g *gate) keep(asked question, no *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = ""
	now := time.Now()
	if no != nil {
		delete(g.allowed, asked)
		drop(g.denied, func(d denial) bool { return now.After(d.until) })
		if len(g.denied) < mostAnswers {
			g.denied[asked] = denial{*no, now.Add(deniedFor)}
		}
		return
	}
	delete(g.denied, asked)
	drop(g.allowed, now.After)
	if len(g.allowed) < mostAnswers {
		g.allowed[asked] = now.Add(allowedFor)
	}
}

// drop removes expired entries, once a map is full.
func drop[V any](m map[question]V, over func(V) bool) {
	if len(m) < mostAnswers {
		return
	}
	for key, value := range m {
		if over(value) {
			delete(m, key)
		}
	}
}

// mayAsk reports whether the limit allows a review of one more token from an address.
func (g *gate) mayAsk(from string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := g.asking[from]
	if limit == nil {
		if len(g.asking) >= mostAddresses {
			clear(g.asking)
		}
		limit = flowcontrol.NewTokenBucketRateLimiter(askedPerSecond, askedAtOnce)
		g.asking[from] = limit
	}
	return limit.TryAccept()
}

// report logs a failure once, until it changes or a review succeeds. It does not log that a client went away.
func (g *gate) report(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	g.mu.Lock()
	again := g.failed == err.Error()
	g.failed = err.Error()
	g.mu.Unlock()
	if !again {
		g.log.Error(err, "checking access to metrics failed; all requests are refused")
	}
}

// local reports whether a request comes from the Pod itself, as with kubectl port-forward.
func local(r *http.Request) bool {
	ip := net.ParseIP(host(r.RemoteAddr))
	return ip != nil && ip.IsLoopback()
}
