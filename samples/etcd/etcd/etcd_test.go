// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

// said is a gateway that gives one answer, and what it was asked.
type said struct {
	*httptest.Server
	asked string
}

func says(t *testing.T, code int, answer string) *said {
	t.Helper()
	s := &said{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.asked = r.Method + " " + r.URL.Path + " " + string(body)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// What etcd 3.7.3 answers.
const (
	twoMembers = `{"header":{"cluster_id":"16740037084576887805", "member_id":"6054513610509566505", "raft_term":"2"}, "members":[` +
		`{"ID":"6054513610509566505", "name":"c-0", "peerURLs":["http://c-0.c.ns.svc:2380"], "clientURLs":["http://c-0.c.ns.svc:2379"]}, ` +
		`{"ID":"12994620757185346542", "peerURLs":["http://c-1.c.ns.svc:2380"], "isLearner":true}]}`
	added = `{"header":{"cluster_id":"16740037084576887805"}, "member":{"ID":"12994620757185346542", "peerURLs":["http://c-1.c.ns.svc:2380"], "isLearner":true}, "members":[]}`
	well  = `{"header":{"cluster_id":"16740037084576887805", "member_id":"6054513610509566505", "revision":"1", "raft_term":"2"}, ` +
		`"version":"3.7.3", "dbSize":"28672", "leader":"6054513610509566505", "raftIndex":"4"}`
	leaderless = `{"header":{"member_id":"12994620757185346542"}, "version":"3.7.3", "errors":["etcdserver: no leader"], "isLearner":true}`
	notFound   = `{"code":5, "message":"etcdserver: member not found"}`
	unhealthy  = `{"code":14, "message":"etcdserver: unhealthy cluster"}`
	notStarted = `{"code":2, "message":"etcdserver: re-configuration failed due to not enough started members"}`
	behind     = `{"code":9, "message":"etcdserver: can only promote a learner member which is in sync with leader"}`
	noLearner  = `{"code":9, "message":"etcdserver: can only promote a learner member"}`
	tooMany    = `{"code":9, "message":"etcdserver: too many learner members in cluster"}`
	older      = `{"error":"etcdserver: unhealthy cluster","code":14,"message":"etcdserver: unhealthy cluster"}`
)

func TestMembersAreRead(t *testing.T) {
	s := says(t, http.StatusOK, twoMembers)
	got, err := etcd.Members(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	want := []etcd.Member{
		{ID: 6054513610509566505, Name: "c-0", PeerURLs: []string{"http://c-0.c.ns.svc:2380"}, ClientURLs: []string{"http://c-0.c.ns.svc:2379"}},
		{ID: 12994620757185346542, PeerURLs: []string{"http://c-1.c.ns.svc:2380"}, Learner: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if want := `POST /v3/cluster/member/list {"linearizable":true}`; s.asked != want {
		t.Errorf("asked %s, want %s", s.asked, want)
	}
	if text := got[1].ID.String(); text != "b4562abaeef33bee" {
		t.Errorf("the id is shown as %s", text)
	}
}

func TestStatusIsRead(t *testing.T) {
	tests := map[string]struct {
		answer string
		want   etcd.Status
	}{
		"of one that works":             {well, etcd.Status{ID: 6054513610509566505, Leader: 6054513610509566505}},
		"of a learner without a leader": {leaderless, etcd.Status{ID: 12994620757185346542, Learner: true, Errors: []string{"etcdserver: no leader"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := says(t, http.StatusOK, test.answer)
			got, err := etcd.StatusOf(t.Context(), s.URL)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if want := `POST /v3/maintenance/status {}`; s.asked != want {
				t.Errorf("asked %s, want %s", s.asked, want)
			}
		})
	}
}

// The changes, as tables want them.
func add(ctx context.Context, url string) error {
	_, err := etcd.AddLearner(ctx, url, "http://c-1.c.ns.svc:2380")
	return err
}
func promote(ctx context.Context, url string) error { return etcd.Promote(ctx, url, 42) }
func remove(ctx context.Context, url string) error  { return etcd.Remove(ctx, url, 42) }

func TestChanges(t *testing.T) {
	tests := map[string]struct {
		change func(context.Context, string) error
		code   int
		answer string
		asked  string
		// what the error has, empty for none; notYet: it is one that passes.
		want   string
		notYet bool
	}{
		"a learner is added":                      {add, 200, added, `/add {"isLearner":true,"peerURLs":["http://c-1.c.ns.svc:2380"]}`, "", false},
		"none is added to what is not whole":      {add, 503, unhealthy, `/add`, "unhealthy cluster", true},
		"older gateways say it in another way":    {add, 503, older, `/add`, "unhealthy cluster", true},
		"a second learner is refused":             {add, 400, tooMany, `/add`, "too many learner", false},
		"a learner is promoted":                   {promote, 200, `{}`, `/promote {"ID":"42"}`, "", false},
		"one that is behind is promoted later":    {promote, 400, behind, `/promote`, "in sync with leader", true},
		"one that has its vote is promoted":       {promote, 400, noLearner, `/promote`, "", false},
		"one that is not there is not promoted":   {promote, 404, notFound, `/promote`, "member not found", false},
		"a member is removed":                     {remove, 200, `{}`, `/remove {"ID":"42"}`, "", false},
		"one that is not there is removed":        {remove, 404, notFound, `/remove`, "", false},
		"a quorum is kept":                        {remove, 500, notStarted, `/remove`, "not enough started members", true},
		"an answer of something else is reported": {remove, 502, `<html>`, `/remove`, "the answer is 502 Bad Gateway", false},
		"an answer that is cut off is reported":   {add, 200, `{"member":{"ID":`, `/add`, "decoding the answer", false},
		"an invalid id is reported":               {add, 200, `{"member":{"ID":"x"}}`, `/add`, "decoding the answer", false},
		"what is refused for good does not pass":  {add, 400, `{"code":3, "message":"etcdserver: given member URLs are invalid"}`, `/add`, "given member URLs", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := says(t, test.code, test.answer)
			err := test.change(t.Context(), s.URL+"/")
			if !strings.HasPrefix(s.asked, "POST /v3/cluster/member"+test.asked) {
				t.Errorf("asked %s", s.asked)
			}
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error is %v, want %q", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), s.URL) {
				t.Errorf("error %v does not name %s", err, s.URL)
			}
			if errors.Is(err, etcd.ErrNotYet) != test.notYet {
				t.Errorf("that %v passes by itself is said to be %t", err, !test.notYet)
			}
		})
	}
}

// TestNoAnswerIsAnError holds that errors name the address once, and say why there was no answer.
func TestNoAnswerIsAnError(t *testing.T) {
	gone := says(t, http.StatusOK, well)
	gone.Close()
	if _, err := etcd.StatusOf(t.Context(), gone.URL); err == nil || strings.Count(err.Error(), gone.URL) != 1 || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error is %v", err)
	}
	if _, err := etcd.StatusOf(t.Context(), "no address"); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("error is %v", err)
	}
	silent, asked := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-silent
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(silent) })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errors.New("the process stops"))
	}()
	if _, err := etcd.StatusOf(ctx, slow.URL); err == nil || !strings.Contains(err.Error(), "the process stops") {
		t.Errorf("error is %v", err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	other := says(t, http.StatusOK, well)
	member := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(member.Close)
	if _, err := etcd.StatusOf(t.Context(), member.URL); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("error is %v, want the redirect", err)
	}
	if other.asked != "" {
		t.Errorf("the redirect led to another server, which was asked %s", other.asked)
	}
}
