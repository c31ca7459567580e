// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func namespaces() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

// podSecurity holds the Pods of a namespace to the Pod Security Standards that its labels name, and warns of templates that do not
// keep to them.
func podSecurity() step {
	s := &security{evaluator()}
	paths := templates()
	return step{refuse: func(c *call) error {
		if c.Resource == namespaces() {
			return s.checkNamespace(c)
		}
		path, found := paths[c.Resource]
		if !found {
			return nil
		}
		space := c.objects.Get(namespaces(), "", c.Namespace)
		if space == nil {
			return nil // not reached by clients: the server asks for the namespace before
		}
		switch standards, _ := standardsOf(space); { // wrong labels name the strictest standard
		case standards.FullyPrivileged():
			return nil
		case c.Resource == pods():
			return s.checkPod(c, standards)
		case c.Subresource == "":
			return s.checkTemplate(c, standards, path)
		}
		return nil
	}}
}

// templates returns where the resources with Pods or their templates have them.
func templates() map[schema.GroupResource][]string {
	template := []string{"spec", "template"}
	return map[schema.GroupResource][]string{
		pods():                                    nil,
		{Resource: "podtemplates"}:                {"template"},
		{Resource: "replicationcontrollers"}:      template,
		{Group: "apps", Resource: "deployments"}:  template,
		{Group: "apps", Resource: "daemonsets"}:   template,
		{Group: "apps", Resource: "replicasets"}:  template,
		{Group: "apps", Resource: "statefulsets"}: template,
		{Group: "batch", Resource: "jobs"}:        template,
		{Group: "batch", Resource: "cronjobs"}:    {"spec", "jobTemplate", "spec", "template"},
	}
}

// standardsOf returns the standards that the labels of a namespace name. The default is that everything is allowed.
func standardsOf(namespace *unstructured.Unstructured) (api.Policy, field.ErrorList) {
	all := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	return api.PolicyToEvaluate(namespace.GetLabels(), api.Policy{Enforce: all, Audit: all, Warn: all})
}

// evaluator returns the checks of all standards. They take a sixth of a server's start, so servers share them.
var evaluator = sync.OnceValue(func() policy.Evaluator {
	out, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic("admission: " + err.Error()) // not reached: the checks are the package's own
	}
	return out
})

// security checks Pods.
type security struct{ evaluator policy.Evaluator }

func (s *security) check(standard api.LevelVersion, meta *metav1.ObjectMeta, spec *corev1.PodSpec) policy.AggregateCheckResult {
	return policy.AggregateCheckResults(s.evaluator.EvaluatePod(standard, meta, spec))
}

// checkPod refuses a Pod, or warns of it. A change of a Pod counts if it brings another image or another container.
func (s *security) checkPod(c *call, standards api.Policy) error {
	if !slices.Contains([]string{"", "ephemeralcontainers", "resize"}, c.Subresource) {
		return nil
	}
	if err := c.readPods(); err != nil {
		return err
	}
	if c.oldPod != nil && reflect.DeepEqual(imagesOf(&c.pod.Spec), imagesOf(&c.oldPod.Spec)) {
		return nil
	}
	if found := s.check(standards.Enforce, &c.pod.ObjectMeta, &c.pod.Spec); !found.Allowed {
		return c.forbidden("violates PodSecurity %q: %s", standards.Enforce.String(), found.ForbiddenDetail())
	}
	s.warn(c, standards.Warn, &c.pod.ObjectMeta, &c.pod.Spec)
	return nil
}

// imagesOf returns the names and images of all containers.
func imagesOf(s *corev1.PodSpec) (out []string) {
	for _, container := range slices.Concat(s.InitContainers, s.Containers) {
		out = append(out, container.Image)
	}
	for _, container := range s.EphemeralContainers {
		out = append(out, container.Name+" "+container.Image)
	}
	return out
}

// checkTemplate warns of a template of Pods.
func (s *security) checkTemplate(c *call, standards api.Policy, path []string) error {
	tree, found, _ := unstructured.NestedMap(c.Object.Object, path...)
	if !found || standards.Warn.Level == api.LevelPrivileged {
		return nil
	}
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, template); err != nil {
		return internal(err)
	}
	s.warn(c, standards.Warn, &template.ObjectMeta, &template.Spec)
	return nil
}

func (s *security) warn(c *call, standard api.LevelVersion, meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	if found := s.check(standard, meta, spec); !found.Allowed {
		c.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", standard.String(), found.ForbiddenDetail()))
	}
}

// checkNamespace refuses labels that name no standard, and warns of Pods that do not keep to a new one.
func (s *security) checkNamespace(c *call) error {
	if c.Subresource != "" {
		return nil
	}
	next, errs := standardsOf(c.Object)
	if c.Old == nil {
		if len(errs) > 0 {
			return apierrors.NewInvalid(c.Kind, c.Name, errs)
		}
		return nil
	}
	old, oldErrs := standardsOf(c.Old)
	if len(errs) > 0 && !reflect.DeepEqual(errs, oldErrs) {
		return apierrors.NewInvalid(c.Kind, c.Name, errs)
	}
	relaxed := next.Enforce.Version == old.Enforce.Version && api.CompareLevels(next.Enforce.Level, old.Enforce.Level) < 1
	if relaxed || next.Enforce.Level == api.LevelPrivileged {
		return nil
	}
	return s.warnOfPods(c, next.Enforce)
}

// warnOfPods warns of the Pods of a namespace that do not keep to a standard, by the faults of the Pods. A warning names the
// first Pod with its fault.
func (s *security) warnOfPods(c *call, standard api.LevelVersion) error {
	all, err := list[corev1.Pod](c.objects, pods(), c.Object.GetName())
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	found := map[string][]string{}
	for _, pod := range all {
		if result := s.check(standard, &pod.ObjectMeta, &pod.Spec); !result.Allowed {
			found[result.ForbiddenReason()] = append(found[result.ForbiddenReason()], pod.Name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	var texts []string
	for reason, names := range found {
		others := ""
		switch n := len(names) - 1; n {
		case 0:
		case 1:
			others = " (and 1 other pod)"
		default:
			others = fmt.Sprintf(" (and %d other pods)", n)
		}
		texts = append(texts, names[0]+others+": "+reason)
	}
	slices.Sort(texts)
	c.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", c.Object.GetName(), standard.String()))
	c.Warn(texts...)
	return nil
}
