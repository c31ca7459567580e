// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// refusing is a server that answers each patch with an error. Moving: others change the object before each read.
type refusing struct {
	answer         error
	moving         bool
	patches, reads int
}

func (s *refusing) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error) {
	s.patches++
	return nil, s.answer
}

func (s *refusing) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	s.reads++
	version := 1
	if s.moving {
		version += s.reads
	}
	return &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": "u", "resourceVersion": fmt.Sprint(version)}}}, nil
}

// TestARefusalIsNoConflictOfVersions holds that a 409 counts as a conflict only if the object has really changed, or at first if the
// answer names the object as the API server's own conflicts do.
func TestARefusalIsNoConflictOfVersions(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Message: "admission webhook denied the request"}}
	named := apierrors.NewConflict(foos, "a", errors.New("busy"))
	for name, tt := range map[string]struct {
		server  refusing
		patches int
		refused bool
	}{
		"a bare conflict about an object that is as it was":  {refusing{answer: bare}, 1, true},
		"a withheld conflict about it":                       {refusing{answer: dsl.Withhold(bare, "")}, 1, true},
		"a conflict that names an object that is as it was":  {refusing{answer: named}, 2, true},
		"a bare conflict about an object that has changed":   {refusing{answer: bare, moving: true}, conflictRetries + 1, false},
		"a conflict that names an object that has changed":   {refusing{answer: named, moving: true}, conflictRetries + 1, false},
		"a withheld conflict about an object that has moved": {refusing{answer: dsl.Withhold(named, ""), moving: true}, conflictRetries + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := dsl.NewPatch()
			p.Label("a", "b")
			object := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": "u", "resourceVersion": "1"}}}
			target := Target{Client: &tt.server, Object: object, Resource: foos}
			result, err := Write(t.Context(), target, p, Marks{})
			for result.Conflict != nil {
				target = target.After(result)
				result, err = Write(t.Context(), target, p, Marks{})
			}
			if tt.server.patches != tt.patches || IsRejected(err) != tt.refused || apierrors.IsConflict(err) == tt.refused || !errors.Is(err, tt.server.answer) {
				t.Errorf("%d patches, %v", tt.server.patches, err)
			}
		})
	}
}
