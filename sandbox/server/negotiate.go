// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// shape is how a client takes the body of a response.
type shape struct {
	yaml, protobuf bool
	// as is the kind into which objects are converted; empty means that they stay as they are. version is that of the kind.
	as, version string
}

// negotiate returns the shape that a client likes best of those which the server has, or false if it has none of them. Only
// objects of types that the server knows have a binary form.
func negotiate(accept string, binary bool) (shape, bool) {
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
		case runtime.ContentTypeProtobuf:
			if out.protobuf = true; !binary {
				continue
			}
		default:
			continue
		}
		if out.as = clause.parameters["as"]; out.convertible(clause.parameters) && (out.as != "Table" || !out.protobuf) {
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
	s.version = parameters["v"]
	return parameters["g"] == metav1.GroupName && (s.version == "v1" || s.version == "v1beta1")
}

// apiVersion returns the version of the kind into which objects are converted.
func (s shape) apiVersion() string { return metav1.GroupName + "/" + s.version }

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
func (r Request) acceptable(t *table, binary bool) error {
	if s, ok := negotiate(r.accept, binary); ok && (!s.yaml || r.Verb != "watch") {
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
	wanted, _ := negotiate(accept, false)
	return wanted.yaml
}

// streamed is what the media type of a watch has beside that of an object.
const streamed = ";stream=watch"

// wantsIndented reports whether the sender of a request reads JSON with its own eyes, or asks for it in lines.
func wantsIndented(h *http.Request) bool {
	if strings.HasPrefix(h.URL.Path, "/openapi/") {
		return false
	}
	if strings.Contains(h.URL.RawQuery, "pretty=") {
		is, _ := strconv.ParseBool(h.URL.Query().Get("pretty"))
		return is
	}
	agent := h.Header.Get("User-Agent")
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// indented returns JSON in lines.
func indented(data []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, data, "", "  ")
	return out.Bytes(), err
}

// rewritten returns a response with its whole body in another form.
func rewritten(response *http.Response, kind string, form func([]byte) ([]byte, error)) (*http.Response, error) {
	data, err := io.ReadAll(response.Body)
	if err == nil {
		err = response.Body.Close()
	}
	if err == nil {
		data, err = form(data)
	}
	if err != nil {
		return nil, err
	}
	response.Header.Set("Content-Type", kind)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return response, nil
}
