// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errKnown = errors.New("known")

// known knows errKnown.
type known struct{}

func (known) Logged(err error) bool { return errors.Is(err, errKnown) }

func TestQuiet(t *testing.T) {
	var lines []string
	sink := funcr.New(func(name, line string) { lines = append(lines, name+" "+line) }, funcr.Options{Verbosity: 1})
	log := Quiet(sink, known{}).WithName("client").WithValues("a", "b")
	cancelled := fmt.Errorf("reading: %w", context.Canceled)
	log.Error(errors.New("broken"), "one")
	log.Error(cancelled, "two", "c", "d")
	log.Error(fmt.Errorf("reading: %w", bodyTimeout{}), "late")
	log.Error(fmt.Errorf("sending: %w", errKnown), "said")
	ending := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("it is ending"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	log.Error(ending, "too late")
	log.Info("three")
	want := []string{
		`client "msg"="one" "error"="broken" "a"="b"`,
		`client "level"=1 "msg"="two" "a"="b" "c"="d" "reason"="reading: context canceled"`,
		`client "level"=1 "msg"="late" "a"="b" "reason"="reading: while reading body"`,
		`client "level"=1 "msg"="said" "a"="b" "reason"="sending: known"`,
		`client "level"=1 "msg"="too late" "a"="b" "reason"="events \"x\" is forbidden: it is ending"`,
		`client "level"=0 "msg"="three" "a"="b"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}

	lines = nil
	few := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	Quiet(few, known{}).Error(cancelled, "two")
	if len(lines) != 0 {
		t.Errorf("a cancellation was logged at the default level: %q", lines)
	}
	Quiet(logr.Discard(), known{}).Error(cancelled, "no one listens")
}

// bodyTimeout is what the HTTP client says when its time is over while a body is read.
type bodyTimeout struct{}

func (bodyTimeout) Error() string   { return "while reading body" }
func (bodyTimeout) Timeout() bool   { return true }
func (bodyTimeout) Temporary() bool { return true }
