// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	"github.com/handwerk-dev/handwerk/sandbox/server/webhook"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// converter is the webhook that converts the objects of a CRD.
type converter struct {
	target *webhook.Target
	// review is the version of the reviews that the webhook takes.
	review string
	// err is why the webhook cannot be called.
	err error
	// local converts in place of the webhook, if it is set.
	local Conversion
}

// Conversion returns an object in another API version. It may change the object that it gets, and must not call the server.
type Conversion func(o *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error)

// Convert makes the server call a function in place of the webhook that a CRD names for its conversions.
func (s *Server) Convert(crd string, by Conversion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conversions[crd] = by
	for name, t := range s.tables {
		if name.String() == crd && t.webhook != nil {
			changed := *t.webhook // a request may have the one before
			changed.local = by
			t.webhook = &changed
		}
	}
}

// converterOf returns the webhook of a CRD, or nil if the server converts its objects by itself.
func (s *Server) converterOf(crd *unstructured.Unstructured) *converter {
	out := converterOf(crd, s.network.dial)
	if out != nil {
		out.local = s.conversions[crd.GetName()]
	}
	return out
}

// conversionPatience is how long a real server waits for a conversion.
const conversionPatience = 30 * time.Second

// converterOf returns the webhook that a CRD names, or nil.
func converterOf(crd *unstructured.Unstructured, dial webhook.Dial) *converter {
	var spec apiextensionsv1.CustomResourceConversion
	tree, found, _ := unstructured.NestedMap(crd.Object, "spec", "conversion")
	if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &spec) != nil ||
		spec.Strategy != apiextensionsv1.WebhookConverter || spec.Webhook == nil || spec.Webhook.ClientConfig == nil {
		return nil
	}
	out := &converter{review: apiextensionsv1.SchemeGroupVersion.String()}
	if versions := spec.Webhook.ConversionReviewVersions; len(versions) > 0 && !slices.Contains(versions, "v1") {
		out.review = apiextensionsv1.GroupName + "/" + versions[0]
	}
	config := spec.Webhook.ClientConfig
	address := ""
	if config.URL != nil {
		address = *config.URL
	} else if config.Service != nil {
		address = webhook.ServiceAddress(config.Service.Namespace, config.Service.Name, config.Service.Port, config.Service.Path)
	}
	out.target, out.err = webhook.New(address, config.CABundle, conversionPatience, dial)
	return out
}

// conversionRequest and conversionAnswer are a ConversionReview on its two ways.
type conversionRequest struct {
	metav1.TypeMeta `json:",inline"`
	Request         struct {
		UID     string            `json:"uid"`
		Version string            `json:"desiredAPIVersion"`
		Objects []json.RawMessage `json:"objects"`
	} `json:"request"`
}

type conversionAnswer struct {
	Response *struct {
		Objects []json.RawMessage `json:"convertedObjects"`
		Result  metav1.Status     `json:"result"`
	} `json:"response"`
}

// convert returns objects in another API version.
func (c *converter) convert(ctx context.Context, objects []*unstructured.Unstructured, version string) ([]*unstructured.Unstructured, error) {
	from := objects[0].GroupVersionKind()
	out, err := c.call(ctx, objects, version)
	if err != nil {
		return nil, internalError(fmt.Errorf("conversion webhook for %v failed: %w", from, err))
	}
	if len(out) != len(objects) {
		return nil, internalError(fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(out), len(objects)))
	}
	for i, o := range out {
		if is := o.GetAPIVersion(); is != version {
			return nil, internalError(fmt.Errorf(
				"conversion webhook for %v returned invalid converted object at index %d: invalid groupVersion (expected %s, received %s)", from, i, version, is))
		}
		restoreMetadata(objects[i], o)
	}
	return out, nil
}

func (c *converter) call(ctx context.Context, objects []*unstructured.Unstructured, version string) (out []*unstructured.Unstructured, err error) {
	if c.local != nil {
		for _, o := range objects {
			converted, err := c.local(o.DeepCopy(), version)
			if err != nil {
				return nil, err
			}
			out = append(out, converted)
		}
		return out, nil
	}
	if c.err != nil {
		return nil, c.err
	}
	var review conversionRequest
	review.APIVersion, review.Kind = c.review, "ConversionReview"
	review.Request.UID, review.Request.Version = string(uuid.NewUUID()), version
	for _, o := range objects {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		review.Request.Objects = append(review.Request.Objects, data)
	}
	var answer conversionAnswer
	if err := c.target.Call(ctx, review, &answer); err != nil {
		return nil, err
	}
	if answer.Response == nil {
		return nil, errors.New("no response provided")
	}
	if answer.Response.Result.Status != metav1.StatusSuccess {
		return nil, errors.New(cmp.Or(answer.Response.Result.Message, "no message provided"))
	}
	for _, data := range answer.Response.Objects {
		o := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(data, &o.Object); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// restoreMetadata gives a converted object the metadata of the one before, but for labels and annotations: a webhook may
// change nothing else of it.
func restoreMetadata(before, after *unstructured.Unstructured) {
	kept, _ := before.DeepCopy().Object["metadata"].(map[string]any)
	changed, _ := after.Object["metadata"].(map[string]any)
	for _, key := range []string{"labels", "annotations"} {
		delete(kept, key)
		if value, found := changed[key]; found {
			kept[key] = value
		}
	}
	after.Object["metadata"] = kept
}

// converts reports whether a webhook has to bring an object into the version of the view.
func (v view) converts(apiVersion string) bool {
	return v.webhook != nil && apiVersion != "" && apiVersion != v.group+"/"+v.version
}

// convertRows returns rows as the version shows them. Those that a webhook converts are sent to it at once.
func (v view) convertRows(ctx context.Context, rows []*store.Row) ([]*store.Row, error) {
	if v.webhook == nil {
		return rows, nil
	}
	out := slices.Clone(rows)
	var objects []*unstructured.Unstructured
	var places []int
	for i, row := range rows {
		if v.converts(row.APIVersion()) {
			objects, places = append(objects, row.Tree()), append(places, i)
		}
	}
	if len(objects) == 0 {
		return rows, nil
	}
	converted, err := v.webhook.convert(ctx, objects, v.group+"/"+v.version)
	if err != nil {
		return nil, err
	}
	for i, o := range converted {
		if form := v.schemas[v.version]; form != nil {
			prune(form, o)
			form.Default(o.Object)
		}
		out[places[i]] = store.NewRow(o)
	}
	return out, nil
}

// convertObject is convertRows for one object, which may be nil. The server's lock is held meanwhile, so the call does not end with
// a request, and the webhook must not ask the server.
func (v view) convertObject(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o == nil || !v.converts(o.GetAPIVersion()) {
		return o, nil
	}
	ctx := context.Background() //nolint:forbidigo // the webhook has a timeout
	out, err := v.webhook.convert(ctx, []*unstructured.Unstructured{o}, v.group+"/"+v.version)
	if err != nil {
		return nil, err
	}
	if form := v.schemas[v.version]; form != nil {
		prune(form, out[0])
		form.Default(out[0].Object)
	}
	return out[0], nil
}

// read returns an object as the version shows it. The object may be nil.
func (v view) read(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := v.convertObject(o)
	if err != nil {
		return nil, err
	}
	return v.show(out), nil
}

// write stores an object in the version in which those of its resource are stored.
func (s *Server) write(t *table, what store.EventType, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if t.webhook == nil || s.dry {
		return s.commit(t, what, o), nil
	}
	stored, err := t.viewIn(t.storage).convertObject(o)
	if err != nil {
		return nil, err
	}
	return s.commit(t, what, stored), nil
}
