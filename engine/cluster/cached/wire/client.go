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

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// New returns a dynamic client like dynamic.NewForConfigAndClient, always with JSON, and with a decoder that takes
// half the time.
func New(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return dial(config, client, style{})
}

// NewSlim is New for objects without managedFields.
func NewSlim(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return dial(config, client, style{slim: true})
}

// Caching is a client for caches, which hold objects in forms of their own.
type Caching struct {
	dynamic.Interface
	config *rest.Config
	client *http.Client
}

// NewCaching is New for caches.
func NewCaching(config *rest.Config, client *http.Client) (*Caching, error) {
	whole, err := New(config, client)
	return &Caching{whole, config, client}, err
}

// Cutting returns a client whose lists and watches convert each object with cut, and return the results in a
// [cached.Carrier]. Cut gets the object's JSON, and must not keep it. It returns nil if that is no stored object.
func (c *Caching) Cutting(cut func(json []byte) *cached.Object) (dynamic.Interface, error) {
	return dial(c.config, c.client, style{cut: cut})
}

// style is the form of decoded objects: trees, trees without managedFields, or the results of cut.
type style struct {
	slim bool
	cut  func(json []byte) *cached.Object
}

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
	if s == nil || as.cut != nil {
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

// SupportedMediaTypes returns JSON alone. Each watch asks for it, and gets decoders of its own.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	var out []runtime.SerializerInfo
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType != runtime.ContentTypeJSON {
			continue
		}
		stream, last := *info.StreamSerializer, new(parts)
		stream.Serializer, stream.Framer = events{stream.Serializer, last}, framer{stream.Framer, last}
		info.Serializer, info.StreamSerializer = objects{info.Serializer, s.style, last}, &stream
		out = append(out, info)
	}
	return out
}
