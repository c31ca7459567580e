// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// hasProtobuf reports whether the objects of a resource have a binary form: those of built-in kinds have one, if schemas keep
// them in the form of their types.
func (s *Server) hasProtobuf(t *table, version string) bool {
	form, is := s.schemaOf(t, version).(Typed)
	return is && form != nil && !t.custom
}

// inProtobuf returns a response with its JSON in the binary form. A page that is no object stays as it is.
func inProtobuf(response *http.Response) (*http.Response, error) {
	if response.Header.Get("Content-Type") != runtime.ContentTypeJSON {
		return response, nil
	}
	data, err := io.ReadAll(response.Body)
	if err == nil {
		err = response.Body.Close()
	}
	if err == nil {
		data, err = toProtobuf(data)
	}
	if err != nil {
		return nil, err
	}
	response.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return response, nil
}

// toProtobuf returns the binary form of an object in JSON.
func toProtobuf(data []byte) ([]byte, error) {
	head := metav1.TypeMeta{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &head); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	into := runtime.Object(&metav1.PartialObjectMetadata{})
	switch head.Kind {
	case "PartialObjectMetadata":
	case "PartialObjectMetadataList":
		into = &metav1.PartialObjectMetadataList{}
	case "CustomResourceDefinition":
		into = &apiextensionsv1.CustomResourceDefinition{}
	case "CustomResourceDefinitionList":
		into = &apiextensionsv1.CustomResourceDefinitionList{}
	default:
		var err error
		if into, err = scheme.Scheme.New(head.GroupVersionKind()); err != nil {
			return nil, fmt.Errorf("reading an object: %w", err)
		}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(into, &out); err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}
	return out.Bytes(), nil
}

// encodeProtobuf appends an event in the binary form, after its length.
func (s *stream) encodeProtobuf(to []byte, i item) []byte {
	object := encoded(i.object)
	if i.row != nil {
		object = appendRow(nil, s.table, s.request, i.row)
	}
	raw, err := toProtobuf(object)
	if err == nil {
		event := metav1.WatchEvent{Type: string(i.what), Object: runtime.RawExtension{Raw: raw}}
		raw, err = event.Marshal()
	}
	if err != nil {
		panic(fmt.Sprintf("server: encoding an event: %v", err)) // not reached: these objects have the types of their kinds
	}
	to = binary.BigEndian.AppendUint32(to, uint32(len(raw)))
	return append(to, raw...)
}
