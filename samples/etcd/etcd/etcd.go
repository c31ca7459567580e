// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcd reads and changes the membership of an etcd cluster by etcd's JSON gateway, without etcd's client.
// The API is that of etcd 3.4 to 3.7.
package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strconv"
	"strings"
	"time"
)

// The timeouts of a request. A change waits for a quorum; etcd itself gives up after seven seconds.
const (
	askTime    = 3 * time.Second
	changeTime = 10 * time.Second
)

// longestAnswer is how many bytes of a response are read. A member list has a few kilobytes.
const longestAnswer = 1 << 20

// ID is the id of a member in its cluster. In JSON it is text, as in the gateway.
type ID uint64

// String returns the id in the form of etcdctl.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText returns the digits.
func (id ID) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(id), 10), nil }

// UnmarshalText reads the digits.
func (id *ID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	*id = ID(n)
	return err
}

// Member is a member of a cluster.
type Member struct {
	ID ID `json:"ID"`
	// Name is empty until the member has started.
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	// ClientURLs is empty until the member has started.
	ClientURLs []string `json:"clientURLs"`
	// Learner: it receives all writes, and has no vote.
	Learner bool `json:"isLearner"`
}

// Status is a member's own status.
type Status struct {
	// ID is the member's id. Leader is the id of the leader that it knows, or zero.
	ID, Leader ID
	// Learner: it has no vote.
	Learner bool
	// Errors are alarms, as of a full disk or of corrupt data.
	Errors []string
}

// The gRPC codes that this package handles.
const (
	codeNotFound           = 5
	codeFailedPrecondition = 9
	codeUnavailable        = 14
)

// Refusal is an error response of a member.
type Refusal struct {
	// Code is the gRPC code.
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error returns the message, which begins with the name of the server.
func (r *Refusal) Error() string { return r.Message }

// ErrNotYet is wrapped by refusals that end by themselves: when the cluster has been healthy for some seconds, or
// when a learner has caught up.
var ErrNotYet = errors.New("the cluster is not ready for the change")

// Is reports whether the target is ErrNotYet and the refusal is such a one.
func (r *Refusal) Is(target error) bool {
	if target != ErrNotYet {
		return false
	}
	switch r.Code {
	case codeUnavailable: // "unhealthy cluster": not all are connected, or not for five seconds; or there is no leader
		return true
	case codeFailedPrecondition:
		return strings.Contains(r.Message, "in sync with leader") || strings.Contains(r.Message, "not enough started members")
	}
	return strings.Contains(r.Message, "not enough started members") // it has no code of its own when a member is removed
}

// Members returns the members of the cluster to which the member at the client URL belongs, as a quorum has them. A
// member that has lost the quorum cannot answer.
func Members(ctx context.Context, url string) ([]Member, error) {
	var out struct{ Members []Member }
	err := post(ctx, url, "/v3/cluster/member/list", askTime, map[string]any{"linearizable": true}, &out)
	return out.Members, err
}

// StatusOf returns the status of the member at the client URL. It involves no other member.
func StatusOf(ctx context.Context, url string) (Status, error) {
	var out struct {
		Header struct {
			ID ID `json:"member_id"`
		}
		Leader  ID
		Learner bool `json:"isLearner"`
		Errors  []string
	}
	err := post(ctx, url, "/v3/maintenance/status", askTime, map[string]any{}, &out)
	return Status{ID: out.Header.ID, Leader: out.Leader, Learner: out.Learner, Errors: out.Errors}, err
}

// AddLearner adds a member with the peer URL, which has no vote until it is promoted. etcd refuses it if a member
// with that URL exists.
func AddLearner(ctx context.Context, url, peerURL string) (Member, error) {
	var out struct{ Member Member }
	err := post(ctx, url, "/v3/cluster/member/add", changeTime, map[string]any{"peerURLs": []string{peerURL}, "isLearner": true}, &out)
	return out.Member, err
}

// Promote gives a learner its vote. The error is [ErrNotYet] while the learner has not caught up with the leader.
// It returns no error if the member has its vote already.
func Promote(ctx context.Context, url string, id ID) error {
	err := post(ctx, url, "/v3/cluster/member/promote", changeTime, map[string]any{"ID": id}, nil)
	if refusal, ok := errors.AsType[*Refusal](err); ok && strings.Contains(refusal.Message, "can only promote a learner member") &&
		!errors.Is(err, ErrNotYet) {
		return nil
	}
	return err
}

// Remove removes a member from the cluster. It returns no error if the member does not exist.
func Remove(ctx context.Context, url string, id ID) error {
	err := post(ctx, url, "/v3/cluster/member/remove", changeTime, map[string]any{"ID": id}, nil)
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Code == codeNotFound {
		return nil
	}
	return err
}

// client follows no redirects: etcd sends none, and another server in a member's place must not choose where a
// request goes.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// post sends one request. Errors have the URL.
func post(ctx context.Context, url, path string, most time.Duration, question, answer any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("no answer within %s", most))
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(url, "/")+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*neturl.Error](err); ok {
			err = wrapped.Err // the rest of it repeats the URL
		}
		return fmt.Errorf("asking %s: %w", url+path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err == nil {
		err = read(response, text, answer)
	}
	if err != nil {
		return fmt.Errorf("asking %s: %w", url+path, err)
	}
	return nil
}

// read decodes a response, or the refusal in it.
func read(response *http.Response, text []byte, answer any) error {
	if response.StatusCode != http.StatusOK {
		refusal := &Refusal{}
		if json.Unmarshal(text, refusal) != nil || refusal.Message == "" {
			return fmt.Errorf("the answer is %s", response.Status)
		}
		return refusal
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("decoding the answer: %w", err)
	}
	return nil
}
