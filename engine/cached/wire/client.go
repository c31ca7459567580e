// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the API server's responses into cached objects without building trees: it scans a frame of a
// watch and copies the bytes. Unusual responses, such as a Status, a bookmark or text that is not JSON, are left to
// client-go's decoder. It also sends the requests for single objects that are frequent.
package wire

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// New returns a dynamic client like dynamic.NewForConfigAndClient, always with JSON, and with a decoder that takes
// half the time.
func New(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return dial(config, client, whole)
}

// NewCached is New for objects that are cached: lists and watches return them as [cached.Carrier].
func NewCached(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return dial(config, client, carried)
}

// NewSlim is New for objects without managedFields.
func NewSlim(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return dial(config, client, slim)
}

// A style is the form of decoded objects.
type style int

const (
	whole style = iota
	carried
	slim
)

func dial(given *rest.Config, client *http.Client, as style) (dynamic.Interface, error) {
	config := dynamic.ConfigFor(given)
	config.GroupVersion, config.APIPath = nil, "/" // the dynamic client uses whole paths
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer{config.NegotiatedSerializer, as}
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	s := newSender(given, client, c, as)
	if s == nil || as == carried {
		return dynamic.New(c), nil
	}
	after := *client
	after.Transport = resumed{client.Transport}
	if c, err = rest.UnversionedRESTClientForConfigAndClient(config, &after); err != nil {
		return nil, err
	}
	return direct{dynamic.New(c), s}, nil
}

// serializer uses our decoders before those of the dynamic client.
type serializer struct {
	runtime.NegotiatedSerializer
	style style
}

// SupportedMediaTypes returns JSON alone.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	var out []runtime.SerializerInfo
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType != runtime.ContentTypeJSON {
			continue
		}
		stream := *info.StreamSerializer
		stream.Serializer, stream.Framer = events{stream.Serializer}, framer{stream.Framer}
		info.Serializer, info.StreamSerializer = objects{info.Serializer, s.style}, &stream
		out = append(out, info)
	}
	return out
}
