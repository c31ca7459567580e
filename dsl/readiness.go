// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Readiness says whether an object has reached the state that its spec asks for, and if not, why.
type Readiness struct {
	// Ready: the object is ready. Failed: it is not ready, and by its status it will not be by itself.
	Ready, Failed bool
	// Reason is a reason for a condition. Message names the object's kind and name, and says what is missing. Both
	// are empty for a ready object.
	Reason, Message string
	// Stage is Message without the numbers that change during a roll-out.
	Stage string
}

// ReasonNotFound is the Reason of an object that does not exist.
const ReasonNotFound = "NotFound"

// ReadinessOf computes by the rules of kstatus whether an object is ready. For the reason it also uses the object's
// own status where that says more: the waiting reason of a Pod's container, or the condition of a Deployment whose
// Pods cannot be created. It does not read Pods of a Deployment: a watch of all Pods would cost too much for a message. An
// object that is nil or empty does not exist.
func ReadinessOf(o *unstructured.Unstructured) (Readiness, error) {
	if o == nil || len(o.Object) == 0 {
		return Readiness{Reason: ReasonNotFound}, nil
	}
	result, err := status.Compute(o)
	if err != nil {
		return Readiness{}, err
	}
	if result.Status == status.CurrentStatus {
		return Readiness{Ready: true}, nil
	}
	why := shortfall{failed: result.Status == status.FailedStatus, message: result.Message}
	for _, c := range result.Conditions {
		why.reason, why.message = c.Reason, cmp.Or(c.Message, result.Message)
	}
	why.reword(o, result.Status == status.TerminatingStatus)
	if !validReason.MatchString(why.reason) || len(why.reason) > mostReason {
		why.reason = "NotReady"
	}
	if why.message == "" && why.reason != "" && why.reason != "NotReady" {
		why.message = "its reason is " + why.reason
	}
	why.message = cmp.Or(why.message, "it does not say why")
	who := named(o)
	return Readiness{
		Failed: why.failed, Reason: why.reason, Message: who + ": " + why.message, Stage: who + ": " + cmp.Or(why.stage, why.message),
	}, nil
}

// ReadinessFields returns the fields of an object by which [ReadinessOf] judges it. Others do not change while it exists.
func ReadinessFields() []Path {
	return []Path{{"spec"}, {"status"}, {"metadata", "generation"}, {"metadata", "deletionTimestamp"}}
}

// validReason matches what the API server accepts as the reason of a condition.
var validReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const mostReason = 1024

// figures matches the progress of a roll-out in kstatus, as in Updated: 1/2.
var figures = regexp.MustCompile(`^([A-Za-z]+): ([0-9]+)/([0-9]+)$`)

// named returns an object's kind and name.
func named(o *unstructured.Unstructured) string {
	name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	return strings.TrimSpace(cmp.Or(o.GetKind(), "object") + " " + name)
}

// shortfall is the reason why an object is not ready. Stage is message without numbers; empty if message has none.
type shortfall struct {
	failed                 bool
	reason, message, stage string
}

// reword rewrites the message of kstatus for people who do not know kstatus, and prefers details of the object's
// own status.
func (s *shortfall) reword(o *unstructured.Unstructured, deleted bool) {
	found := figures.FindStringSubmatch(s.message)
	switch {
	case deleted:
		s.reason, s.message = "Terminating", "it is being deleted"
		return
	case s.reason == "LatestGenerationNotObserved":
		s.message = "its controller has not seen the last change yet"
		return
	case found != nil:
		what := strings.ToLower(found[1])
		if what == "replicas" {
			what = "created"
		}
		s.message = fmt.Sprintf("%s of %s %s", found[2], found[3], what)
		s.stage = fmt.Sprintf("not all of %s are %s", found[3], what)
	case s.reason == "ExtraPods":
		s.message, s.stage = "Pods that are too many are still there", ""
	}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Pod":
		s.ofPod(o)
	case "Deployment.apps", "ReplicaSet.apps":
		s.take(o, "ReplicaFailure", "True")
	case "Job.batch":
		s.take(o, "Failed", "True")
	}
	if s.reason == "DeploymentNotAvailable" {
		s.take(o, "Available", "False")
	}
}

// take copies reason and message from a condition of the object, if it has that status.
func (s *shortfall) take(o *unstructured.Unstructured, kind, status string) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		if c["type"] == kind && c["status"] == status && reason != "" {
			s.reason, s.message, s.stage = reason, cmp.Or(message, s.message), ""
			return true
		}
	}
	return false
}

// ofPod says why a Pod is not ready: it has no node, or a container waits. It prefers containers that wait for
// something other than their turn.
func (s *shortfall) ofPod(o *unstructured.Unstructured) {
	if s.take(o, "PodScheduled", "False") {
		return
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		containers, _, _ := unstructured.NestedSlice(o.Object, "status", list)
		for _, item := range containers {
			container, _ := item.(map[string]any)
			reason, _, _ := unstructured.NestedString(container, "state", "waiting", "reason")
			if reason == "" || reason == "PodInitializing" || reason == "ContainerCreating" {
				continue
			}
			message, _, _ := unstructured.NestedString(container, "state", "waiting", "message")
			s.reason, s.message = reason, fmt.Sprintf("container %v: %s", container["name"], cmp.Or(ended(container, reason), message, reason))
			return
		}
	}
}

// ended says how a container that restarts again and again has ended. The message in its status is not used,
// because it changes each time.
func ended(container map[string]any, reason string) string {
	last, found, _ := unstructured.NestedMap(container, "lastState", "terminated")
	if !found || reason != "CrashLoopBackOff" {
		return ""
	}
	return fmt.Sprintf("it ended with exit code %v, and is restarted", last["exitCode"])
}
