// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func priorityClasses() schema.GroupResource {
	return schema.GroupResource{Group: schedulingv1.GroupName, Resource: "priorityclasses"}
}

// priority gives a new Pod the priority of its class, or of the default class, and keeps that when the Pod changes. There is at most
// one default class.
func priority() step {
	return step{
		complete: onPod(func(c *call, pod, old *corev1.Pod) error {
			if old == nil {
				return prioritize(c, &pod.Spec)
			}
			if pod.Spec.Priority == nil {
				pod.Spec.Priority = old.Spec.Priority
			}
			if pod.Spec.PreemptionPolicy == nil {
				pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
			}
			return nil
		}),
		refuse: func(c *call) error {
			if c.Resource != priorityClasses() || c.Object.Object["globalDefault"] != true {
				return nil
			}
			other, err := defaultPriorityClass(c)
			if err == nil && other != nil && (c.Old == nil || other.Name != c.Object.GetName()) {
				return c.forbidden("PriorityClass %v is already marked as default. Only one default can exist", other.Name)
			}
			return err
		},
	}
}

// prioritize gives a Pod the priority of its class. A Pod that says another one is refused.
func prioritize(c *call, s *corev1.PodSpec) error {
	class, err := priorityClassOf(c, s.PriorityClassName)
	if err != nil {
		return err
	}
	s.PriorityClassName = class.Name
	if s.Priority != nil && *s.Priority != class.Value {
		return c.forbidden("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *s.Priority, class.Value)
	}
	s.Priority = &class.Value
	if class.PreemptionPolicy == nil {
		return nil
	}
	if s.PreemptionPolicy != nil && *s.PreemptionPolicy != *class.PreemptionPolicy {
		return c.forbidden("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *s.PreemptionPolicy, *class.PreemptionPolicy)
	}
	s.PreemptionPolicy = class.PreemptionPolicy
	return nil
}

// priorityClassOf returns the PriorityClass of a name. Without a name it is the default class, or one without a name.
func priorityClassOf(c *call, name string) (*schedulingv1.PriorityClass, error) {
	if name == "" {
		class, err := defaultPriorityClass(c)
		if class == nil {
			class = &schedulingv1.PriorityClass{PreemptionPolicy: new(corev1.PreemptLowerPriority)}
		}
		return class, err
	}
	class, err := get[schedulingv1.PriorityClass](c.objects, priorityClasses(), "", name)
	if err == nil && class == nil {
		return nil, c.forbidden("no PriorityClass with name %v was found", name)
	}
	return class, err
}

// defaultPriorityClass returns the default PriorityClass, or nil. Of several ones it is that with the lowest priority.
func defaultPriorityClass(c *call) (out *schedulingv1.PriorityClass, err error) {
	for _, o := range c.objects.List(priorityClasses(), "") {
		if o.Object["globalDefault"] != true {
			continue
		}
		class, err := read[schedulingv1.PriorityClass](o)
		if err != nil {
			return nil, internal(err)
		}
		if out == nil || out.Value > class.Value {
			out = class
		}
	}
	return out, nil
}
