// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// indexed reports whether each Pod of a Job has an index.
func indexed(j *batchv1.Job) bool {
	return j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion && j.Spec.Completions != nil
}

// index gives a Pod its index.
func index(p *corev1.Pod, job string, n int) {
	text := strconv.Itoa(n)
	p.GenerateName = fmt.Sprintf("%s-%d-", job, n)
	p.Annotations = with(p.Annotations, batchv1.JobCompletionIndexAnnotation, text)
	p.Labels = with(p.Labels, batchv1.JobCompletionIndexAnnotation, text)
	p.Spec.Hostname = fmt.Sprintf("%s-%d", job, n)
	variable := corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation)},
	}}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i].Env = append(list[i].Env, variable)
		}
	}
}

// completed returns the indexes that have succeeded, sorted.
func (r *jobRun) completed() []int {
	out := indexesIn(r.j.Status.CompletedIndexes)
	for _, p := range r.pods {
		if n, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil && p.Status.Phase == corev1.PodSucceeded {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// openIndexes returns the indexes that neither have succeeded nor run.
func (r *jobRun) openIndexes() (out []int) {
	if !indexed(r.j) {
		return nil
	}
	taken := map[int]bool{}
	for _, n := range r.completed() {
		taken[n] = true
	}
	for _, p := range r.active {
		if n, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
			taken[n] = true
		}
	}
	for n := range int(*r.j.Spec.Completions) {
		if !taken[n] {
			out = append(out, n)
		}
	}
	return out
}

// indexesIn reads indexes in the form of a Job's status, as in 0-2,4.
func indexesIn(text string) (out []int) {
	for span := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(span, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for n := first; n <= last; n++ {
			out = append(out, n)
		}
	}
	return out
}

// spans writes sorted indexes in the form of a Job's status.
func spans(list []int) string {
	var out []string
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		span := strconv.Itoa(list[i])
		if end > i {
			span += "-" + strconv.Itoa(list[end])
		}
		out = append(out, span)
		i = end + 1
	}
	return strings.Join(out, ",")
}
