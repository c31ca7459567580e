// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// controlPath is where a sandbox that runs takes controls. No API server has such a path.
const controlPath = "/sandbox/v1/"

// ControlVerb says what a [Control] does.
type ControlVerb string

// The verbs are those of [Clock], [Workloads] and [Sandbox.Fail].
const (
	ControlAdvance ControlVerb = "advance"
	ControlHold    ControlVerb = "hold"
	ControlFail    ControlVerb = "fail"
	ControlDelay   ControlVerb = "delay"
	ControlRelease ControlVerb = "release"
)

// Control changes a sandbox that another process runs. It is the body of a POST to /sandbox/v1/VERB. Only the administrator of
// the sandbox's kubeconfig may send it, and only from the machine on which the sandbox runs.
type Control struct {
	// Workload is what is held, failed, delayed or released, in the form of [Workloads].
	Workload string `json:"workload,omitempty"`
	// Reason is that of [Workloads.Fail].
	Reason string `json:"reason,omitempty"`
	// Duration is that of [Clock.Advance] and [Workloads.Delay], as in 1h30m.
	Duration metav1.Duration `json:"duration,omitzero"`
	// Request are the requests that fail, or are released, if there is no workload.
	Request *Fault `json:"request,omitempty"`
	// All releases everything.
	All bool `json:"all,omitempty"`
}

// Controlled is the answer to a [Control].
type Controlled struct {
	// Now is the time of the sandbox.
	Now time.Time `json:"now"`
}

// Send sends a control to the sandbox of a config. The errors are those of the API machinery.
func Send(ctx context.Context, config *rest.Config, verb ControlVerb, control Control) (out Controlled, err error) {
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{
		ContentType: runtime.ContentTypeJSON, GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return out, fmt.Errorf("connecting: %w", err)
	}
	body, err := json.Marshal(control)
	if err != nil {
		return out, err
	}
	result := client.Post().AbsPath(controlPath + string(verb)).Body(body).Do(ctx)
	if err := result.Error(); err != nil { // Raw has no words of the answer
		return out, err
	}
	data, err := result.Raw()
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(data, &out)
}
