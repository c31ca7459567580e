// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// shape is how a client takes the body of a response.
type shape struct {
	yaml bool
	// as is the kind into which objects are converted; empty means that they stay as they are.
	as string
}

// negotiate returns the shape that a client likes best of those which the server has, or false if it has none of them.
func negotiate(accept string) (shape, bool) {
	switch accept {
	case "", runtime.ContentTypeJSON, runtime.ContentTypeJSON + ", */*": // as clients of Kubernetes send it
		return shape{}, true
	}
	for _, clause := range clauses(accept) {
		var out shape
		switch clause.media {
		case runtime.ContentTypeJSON, "application/*", "*/*":
		case runtime.ContentTypeYAML:
			out.yaml = true
		default:
			continue
		}
		if out.as = clause.parameters["as"]; out.convertible(clause.parameters) {
			return out, true
		}
	}
	return shape{}, false
}

// convertible reports whether objects can be converted as the parameters of a media type ask.
func (s *shape) convertible(parameters map[string]string) bool {
	switch s.as {
	case "":
		return parameters["g"] == "" && parameters["v"] == ""
	case "PartialObjectMetadataList":
		s.as = "PartialObjectMetadata"
	case "Table", "PartialObjectMetadata":
	default:
		return false
	}
	return parameters["g"] == metav1.GroupName && parameters["v"] == "v1"
}

// clause is one of the media types of an Accept header.
type clause struct {
	media      string
	parameters map[string]string
	quality    float64
}

// clauses returns the media types that a client takes, the best one first.
func clauses(accept string) (out []clause) {
	for part := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			quality = 1
		}
		out = append(out, clause{media, parameters, quality})
	}
	slices.SortStableFunc(out, func(a, b clause) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(strings.Count(a.media, "*"), strings.Count(b.media, "*")))
	})
	return out
}

// acceptable returns the error for a client that takes no shape which the server has, or nil. The router of a real
// server refuses requests for built-in resources whose media types are all unknown.
func (r Request) acceptable(t *table) error {
	if s, ok := negotiate(r.accept); ok && (!s.yaml || r.Verb != "watch") {
		return nil
	}
	known := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
	routed := slices.ContainsFunc(clauses(r.accept), func(c clause) bool {
		return c.media == "*/*" || slices.Contains(known, c.media)
	})
	if !routed && !t.custom {
		return unrouted(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+strings.Join(known, ", "))
	}
	media := known
	if r.Verb == "watch" {
		media = []string{known[0] + streamed, known[2] + streamed}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(media, ", "),
	}}
}

// wantsYAML reports whether the client of a request takes YAML.
func wantsYAML(h *http.Request) bool {
	accept := h.Header.Get("Accept")
	if !strings.Contains(accept, runtime.ContentTypeYAML) {
		return false
	}
	wanted, _ := negotiate(accept)
	return wanted.yaml
}

// streamed is what the media type of a watch has beside that of an object.
const streamed = ";stream=watch"

// inYAML returns a response with its JSON as YAML.
func inYAML(response *http.Response) (*http.Response, error) {
	data, err := io.ReadAll(response.Body)
	if err == nil {
		err = response.Body.Close()
	}
	if err == nil {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return nil, err
	}
	response.Header.Set("Content-Type", runtime.ContentTypeYAML)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return response, nil
}
