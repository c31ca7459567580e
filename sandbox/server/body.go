// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxBody is the largest body of a request in bytes.
const maxBody = 3 << 20

// read reads and decodes the body. An object that cannot be decoded is an error of the request once its kind is known.
func (r *Request) read(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	case len(data) > maxBody:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	r.raw = data
	switch r.Verb {
	case "create", "update":
		return r.readObject()
	case "patch":
		return r.readPatch()
	case "delete", "deletecollection":
		if len(data) > 0 {
			return r.readObject()
		}
	}
	return nil
}

// typeMeta is what a real server reads of an object before all else. It has no name, as errors would say it.
type typeMeta = struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// readObject decodes the body of a create, an update or a deletion.
func (r *Request) readObject() error {
	switch r.contentType {
	case "", "*/*", runtime.ContentTypeJSON:
	case runtime.ContentTypeYAML:
		data, err := yaml.YAMLToJSON(r.raw)
		if err != nil {
			r.malformed = err
			return nil
		}
		r.raw = data
	case runtime.ContentTypeProtobuf:
		if r.raw, r.malformed = fromProtobuf(r.raw); r.malformed != nil {
			return nil
		}
	default:
		return unsupportedBody()
	}
	var head typeMeta
	if err := stdjson.Unmarshal(r.raw, &head); err != nil {
		r.malformed = fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		return nil
	}
	strict, err := kjson.UnmarshalStrict(r.raw, &r.Body, kjson.DisallowDuplicateFields)
	if err != nil {
		r.malformed = err
	}
	for _, each := range strict {
		r.twice = append(r.twice, each.Error())
	}
	return nil
}

// fromProtobuf returns the JSON of a built-in object. Typed clients send protobuf unless they are asked not to.
func fromProtobuf(data []byte) ([]byte, error) {
	o, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(data, nil, nil)
	if err != nil {
		return data, err
	}
	return stdjson.Marshal(o)
}

// unsupportedBody returns the error for an object in an unknown form.
func unsupportedBody() error {
	return unsupported(runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
}

// readPatch decodes a patch, except that of a JSON patch, which is a list.
func (r *Request) readPatch() error {
	switch types.PatchType(r.contentType) {
	case types.ApplyPatchType:
		if stdjson.Valid(r.raw) {
			break // as most clients send it
		}
		data, err := yaml.YAMLToJSON(r.raw)
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
		}
		r.twice = keysSetTwice(r.raw)
		r.raw = data
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType:
		if !stdjson.Valid(r.raw) {
			return apierrors.NewBadRequest("invalid JSON patch")
		}
	default:
		r.malformed = errPatchType // what the resource supports is known later
		return nil
	}
	if types.PatchType(r.contentType) == types.JSONPatchType {
		return nil
	}
	if err := json.Unmarshal(r.raw, &r.Body); err != nil {
		why := err.Error()
		if types.PatchType(r.contentType) != types.StrategicMergePatchType {
			why = "error decoding patch: " + why
		}
		return apierrors.NewBadRequest(why)
	}
	return nil
}

// keysSetTwice says which keys of a YAML document are there twice.
func keysSetTwice(document []byte) (out []string) {
	_, err := yaml.YAMLToJSONStrict(document)
	if err == nil {
		return nil
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, "already set in map") {
			out = append(out, line)
		}
	}
	return out
}

// errPatchType is the error of a patch of an unknown type.
var errPatchType = errors.New("unknown type of patch")

// unrecognized returns the error for a body that is no object of the kind.
func (r Request) unrecognized(kind string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, r.malformed, summary(r.raw)))
}

// summary returns the beginning of a body as the API server shows it.
func summary(data []byte) string {
	const most = 30
	text, more := hex.EncodeToString(data[:min(len(data), most)]), ""
	if len(data) > most {
		more = " ..."
	}
	switch {
	case len(data) == 0:
		return "<empty>"
	case data[0] == '{':
		text = string(data[:min(len(data), most)])
	}
	return text + more
}

// unsupported returns the error for a body in a form other than these media types.
func unsupported(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

// unsupportedPatch returns the error for a type of patch that the resource does not support.
func unsupportedPatch(t *table) error {
	if !t.custom {
		return unrouted(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
	}
	return unsupported(string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyPatchType))
}
