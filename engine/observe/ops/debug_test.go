// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// parrot repeats a question, and knows no object called gone.
type parrot struct{}

func (parrot) Ask(_ context.Context, question string, values url.Values) (any, error) {
	switch {
	case question == "status":
		return map[string]string{"status": values.Encode()}, nil
	case question != "why":
		return nil, apierrors.NewBadRequest("unknown question")
	case values.Get("name") == "gone":
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "foos"}, "gone")
	}
	return nil, fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)
}

// asks serves, and returns a function that asks at a path with a Host header, and returns the code and the body.
func asks(t *testing.T, s Settings) (server *Server, ask func(path, host string) string) {
	t.Helper()
	s.Debug.Debug, s.Debug.Operator, s.Debug.Process = parrot{}, "foo", "foo-0_1"
	server = NewServer(s)
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	t.Cleanup(func() {
		_ = server.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	network, address := "tcp", server.DebugAddress()
	if path, socket := strings.CutPrefix(address, "unix:"); socket {
		network, address = "unix", path
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}}
	return server, func(path, host string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintln(response.StatusCode, response.Header.Get(OperatorHeader), response.Header.Get(ProcessHeader), strings.TrimSpace(string(body)))
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	_, ask := asks(t, Settings{Debug: DebugSettings{Address: "127.0.0.1:0"}})
	tests := map[string]struct{ path, want string }{
		"an answer is JSON":                     {"/debug/status?a=b", `200 foo foo-0_1 {"status":"a=b"}`},
		"an object that is not known is 404":    {"/debug/why?name=gone", `404 foo foo-0_1 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"foos.example.com \"gone\" not found","reason":"NotFound","details":{"name":"gone","group":"example.com","kind":"foos"},"code":404}`},
		"an unknown question is 400":            {"/debug/what", `400 foo foo-0_1 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"unknown question","reason":"BadRequest","code":400}`},
		"another error is the operator's fault": {"/debug/why", `500 foo foo-0_1 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"reading: unexpected EOF","code":500}`},
		"profiles are not there":                {"/debug/pprof/heap", "404   404 page not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want+"\n", ask(test.path, "localhost")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyThisMachineIsAnswered holds that a page in a browser of this machine, under whatever name it leads to a loopback
// address, reads no answer.
func TestOnlyThisMachineIsAnswered(t *testing.T) {
	_, ask := asks(t, Settings{Debug: DebugSettings{Address: "127.0.0.1:0"}})
	tests := map[string]struct {
		host string
		code string
	}{
		"localhost":                                {"localhost:8082", "200"},
		"a loopback address":                       {"127.0.0.1:8082", "200"},
		"one of IPv6":                              {"[::1]:8082", "200"},
		"a name that was made to lead here":        {"evil.example.com:8082", "403"},
		"a name that begins as an address of here": {"127.0.0.1.evil.example.com", "403"},
		"the name localhost in another domain":     {"localhost.evil.example.com", "403"},
		"another machine's address":                {"10.0.0.1:8082", "403"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ask("/debug/status", test.host); !strings.HasPrefix(got, test.code) {
				t.Errorf("got %s, want %s", got, test.code)
			}
		})
	}
}

// TestAPageOfAnotherSiteIsNotAnswered: a page can have a browser send requests to 127.0.0.1 whose answers it may not read. They do not
// reach the operator either.
func TestAPageOfAnotherSiteIsNotAnswered(t *testing.T) {
	server, _ := asks(t, Settings{Debug: DebugSettings{Address: "127.0.0.1:0"}})
	for name, test := range map[string]struct {
		header http.Header
		code   int
	}{
		"a script of another site":                   {http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}, 403},
		"one that asks for no answer":                {http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}, 403},
		"a script from another port of this machine": {http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		"an old browser":                             {http.Header{"Origin": {"null"}}, 403},
		"the address that a person types":            {http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		"a page of the operator itself":              {http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
		"a program":                                  {nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.DebugAddress()+"/debug/status", nil)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(r.Header, test.header)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != test.code {
				t.Errorf("the code is %d, want %d", response.StatusCode, test.code)
			}
		})
	}
}

// TestWhereQuestionsAreAnswered holds which addresses can be served, and what is said about the others.
func TestWhereQuestionsAreAnswered(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := busy.Addr().String()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		settings DebugSettings
		want     string
	}{
		"a port of this machine":                       {DebugSettings{Address: "127.0.0.1:0"}, ""},
		"a port of this machine by its name":           {DebugSettings{Address: "localhost:0"}, ""},
		"off":                                          {DebugSettings{Address: "0"}, ""},
		"a port that is taken":                         {DebugSettings{Address: taken}, "listening on " + taken + " (--debug-bind-address): bind: address already in use"},
		"a default port that is taken":                 {DebugSettings{Address: taken, Elsewhere: true}, ""},
		"a port for all machines":                      {DebugSettings{Address: ":8082"}, "listening on :8082 (--debug-bind-address): other machines may reach this address, so it needs --metrics-secure; without, serve on 127.0.0.1:8082"},
		"a file that is no socket":                     {DebugSettings{Address: "unix:" + file}, "listening on " + file + " (--debug-bind-address): address already in use"},
		"a socket in a directory that is not there":    {DebugSettings{Address: "unix:/nowhere/s"}, "listening on /nowhere/s (--debug-bind-address): no such file or directory"},
		"a default port, if it is no address of here":  {DebugSettings{Address: "localhost:99999", Elsewhere: true}, "listening on localhost:99999 (--debug-bind-address): address 99999: invalid port"},
		"another address of this machine, as of a Pod": {DebugSettings{Address: "10.0.0.1:0"}, "listening on 10.0.0.1:0 (--debug-bind-address): other machines may reach this address, so it needs --metrics-secure; without, serve on 127.0.0.1:8082"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewServer(Settings{Debug: test.settings})
			err := s.Listen(t.Context())
			s.close()
			if got := fmt.Sprint(err); err != nil && got != test.want || err == nil && test.want != "" {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestATakenDefaultIsOneLineOfTheLog holds that two operators on one machine both start, and that the log says where the second
// one answers.
func TestATakenDefaultIsOneLineOfTheLog(t *testing.T) {
	first, _ := asks(t, Settings{Debug: DebugSettings{Address: "127.0.0.1:0"}})
	var log bytes.Buffer
	second, ask := asks(t, Settings{
		Debug: DebugSettings{Address: first.DebugAddress(), Elsewhere: true},
		Log:   funcr.New(func(_, args string) { fmt.Fprintln(&log, args) }, funcr.Options{}),
	})
	want := fmt.Sprintf(`"level"=0 "msg"="the default address is taken, so another one serves" "flag"="--debug-bind-address" "taken"=%q "address"=%q`+"\n", first.DebugAddress(), second.DebugAddress())
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := ask("/debug/status", "localhost"); !strings.HasPrefix(got, "200 foo") {
		t.Errorf("the second one answers %s", got)
	}
}

// TestASocketIsForItsUserAlone holds the mode of a Unix socket, that one which a process has left behind is replaced, and that
// one which answers is not.
func TestASocketIsForItsUserAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	server, ask := asks(t, Settings{Debug: DebugSettings{Address: "unix:" + path}})
	if got := ask("/debug/status", "any.example.com"); !strings.HasPrefix(got, "200 foo") {
		t.Errorf("got %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	if got := server.DebugAddress(); got != "unix:"+path {
		t.Errorf("the address is %s", got)
	}
	err = NewServer(Settings{Debug: DebugSettings{Address: "unix:" + path}}).Listen(t.Context())
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a second process on the socket: %v", err)
	}
}

// TestOtherMachinesNeedATokenForQuestions holds that an address which others reach is served by TLS, to accounts that may get the
// path.
func TestOtherMachinesNeedATokenForQuestions(t *testing.T) {
	v := &reviews{may: map[string]bool{"alice": true}}
	s := NewServer(Settings{
		Debug:  DebugSettings{Address: "0.0.0.0:0", Debug: parrot{}, Operator: "foo"},
		Secure: &Secure{Tokens: (*tokens)(v), Access: (*accesses)(v)}, Log: logr.Discard(),
	})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	defer func() {
		_ = s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	}()
	_, port, _ := net.SplitHostPort(s.DebugAddress())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for token, want := range map[string]int{"alice": 200, "bob": 403, "": 401} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/debug/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%q gets %d, want %d", token, response.StatusCode, want)
		}
	}
	if !strings.Contains(strings.Join(v.paths, "\n"), "{/debug/status get}") {
		t.Errorf("the API server was asked for %v", v.paths)
	}
}
