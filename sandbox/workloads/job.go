// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stepJob makes the Pods of a Job until enough have succeeded or too many have failed.
func stepJob(l *loop, j *batchv1.Job, rule Rule) error {
	if jobEnd(j) != nil {
		return l.expire(j)
	}
	if by := j.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		return nil // another controller makes its Pods and writes its status
	}
	run := jobRun{loop: l, j: j, rule: rule, next: j.Status.DeepCopy()}
	run.count()
	var err error
	if j.DeletionTimestamp == nil {
		if err = run.advance(); err == nil && l.moved {
			return l.again("Job", j)
		}
	}
	if wrote := l.status("Job", j, controllers, j.Status, *run.next); wrote != nil {
		return wrote
	}
	return err
}

// jobRun is a Job with its Pods and the status that it is about to have.
type jobRun struct {
	*loop
	j      *batchv1.Job
	rule   Rule
	next   *batchv1.JobStatus
	pods   []*corev1.Pod
	active []*corev1.Pod
}

// count counts the Pods. One that has ended counts even after it is deleted.
func (r *jobRun) count() {
	r.pods = listOf[*corev1.Pod](r.caches["Pod"].of(r.j.UID))
	var succeeded, failed, ready, ending int32
	r.active = nil
	for _, p := range r.pods {
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case p.Status.Phase == corev1.PodFailed:
			failed++
		case p.DeletionTimestamp != nil:
			ending++
		default:
			r.active = append(r.active, p)
			if readySince(p) != nil {
				ready++
			}
		}
	}
	r.next.Succeeded, r.next.Failed = max(r.next.Succeeded, succeeded), max(r.next.Failed, failed)
	r.next.Active, r.next.Ready, r.next.Terminating = int32(len(r.active)), &ready, &ending
	if r.next.UncountedTerminatedPods == nil {
		r.next.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	if indexed(r.j) {
		r.next.CompletedIndexes = spans(r.completed())
	}
}

// advance decides what the Job does next.
func (r *jobRun) advance() error {
	if r.j.Spec.Suspend != nil && *r.j.Spec.Suspend {
		return r.suspend()
	}
	if r.next.StartTime == nil {
		start := r.now()
		r.next.StartTime = &start
	}
	if c := jobCondition(r.next, batchv1.JobSuspended); c != nil {
		if c.Status == corev1.ConditionTrue {
			r.events.normal(r.ctx, r.j, jobController, "Resumed", "Job resumed")
		}
		setJobCondition(r.next, r.now(), batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
	}
	if reason, message := r.failure(); reason != "" {
		return r.finish(false, reason, message)
	}
	if r.complete() {
		return r.finish(true, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	}
	return r.start()
}

func (r *jobRun) suspend() error {
	r.next.StartTime = nil
	if c := jobCondition(r.next, batchv1.JobSuspended); c == nil || c.Status != corev1.ConditionTrue {
		r.events.normal(r.ctx, r.j, jobController, "Suspended", "Job suspended")
	}
	setJobCondition(r.next, r.now(), batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
	return r.stop()
}

// stop deletes the Pods that run.
func (r *jobRun) stop() error {
	for _, p := range r.active {
		if err := r.deletePod(r.j, p, jobController); err != nil {
			return err
		}
	}
	r.count()
	return nil
}

// failure returns why the Job has failed; nothing if it has not.
func (r *jobRun) failure() (reason, message string) {
	limit := int32(6)
	if r.j.Spec.BackoffLimit != nil {
		limit = *r.j.Spec.BackoffLimit
	}
	if r.rule.Fail != "" {
		limit = 0 // it has to fail, and no retry will help
	}
	if r.next.Failed > limit {
		return batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	}
	if seconds := r.j.Spec.ActiveDeadlineSeconds; seconds != nil {
		left := r.until(r.next.StartTime.Add(time.Duration(*seconds) * time.Second))
		if left <= 0 {
			return batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"
		}
		r.later("Job", r.j, left)
	}
	return "", ""
}

// complete reports whether enough Pods have succeeded.
func (r *jobRun) complete() bool {
	if r.j.Spec.Completions == nil {
		return r.next.Succeeded > 0 && len(r.active) == 0
	}
	return r.next.Succeeded >= *r.j.Spec.Completions
}

// finish ends the Job as soon as its Pods have ended.
func (r *jobRun) finish(well bool, reason, message string) error {
	before, after := batchv1.JobFailureTarget, batchv1.JobFailed
	if well {
		before, after = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	}
	if r.rule.Fail != "" && !well && slices.Contains(jobReasons, r.rule.Fail) {
		reason = r.rule.Fail
	}
	setJobCondition(r.next, r.now(), before, corev1.ConditionTrue, reason, message)
	if err := r.stop(); err != nil || *r.next.Terminating > 0 {
		return err
	}
	setJobCondition(r.next, r.now(), after, corev1.ConditionTrue, reason, message)
	if !well {
		r.events.warning(r.ctx, r.j, jobController, reason, "%s", message)
		return nil
	}
	r.events.normal(r.ctx, r.j, jobController, "Completed", "Job completed")
	end := r.now()
	r.next.CompletionTime = &end
	return nil
}

// jobReasons are those with which a rule may let a Job fail.
var jobReasons = []string{
	batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
	batchv1.JobReasonMaxFailedIndexesExceeded, batchv1.JobReasonFailedIndexes,
}

// start makes the Pods that may run now. After failures it waits as long as a cluster does.
func (r *jobRun) start() error {
	want := replicasOf(r.j.Spec.Parallelism)
	if r.j.Spec.Completions != nil {
		want = min(want, *r.j.Spec.Completions-r.next.Succeeded)
	} else if r.next.Succeeded > 0 {
		want = int32(len(r.active))
	}
	if n := int(r.next.Failed); n > 0 && int(want) > len(r.active) {
		pause := min(10*time.Second<<min(n-1, 10), 10*time.Minute)
		if !r.waited("Job", r.j, "retry "+strconv.Itoa(n), pause) {
			return nil
		}
	}
	open := r.openIndexes()
	for range int(want) - len(r.active) {
		p := r.pod()
		if indexed(r.j) && len(open) > 0 {
			index(p, r.j.Name, open[0])
			open = open[1:]
		}
		if err := r.createPod(r.j, p, jobController); err != nil {
			return err
		}
	}
	for _, p := range r.active[min(len(r.active), max(0, int(want))):] {
		if err := r.deletePod(r.j, p, jobController); err != nil {
			return err
		}
	}
	r.count()
	return nil
}

func (r *jobRun) pod() *corev1.Pod {
	p := podFrom(&r.j.Spec.Template, r.j, "Job")
	p.GenerateName = r.j.Name + "-"
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		p.Labels = with(p.Labels, prefix+"job-name", r.j.Name)
		p.Labels[prefix+"controller-uid"] = string(r.j.UID)
	}
	return p
}

// expire deletes a Job after the time that it may stay when it has ended.
func (l *loop) expire(j *batchv1.Job) error {
	end := jobEnd(j)
	if j.Spec.TTLSecondsAfterFinished == nil || j.DeletionTimestamp != nil {
		return nil
	}
	if left := l.until(end.LastTransitionTime.Add(time.Duration(*j.Spec.TTLSecondsAfterFinished) * time.Second)); left > 0 {
		l.later("Job", j, left)
		return nil
	}
	return l.delete("Job", j, nil)
}

// jobEnd returns the condition that says how a Job has ended; nil if it has not.
func jobEnd(j *batchv1.Job) *batchv1.JobCondition {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := jobCondition(&j.Status, kind); c != nil && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func jobCondition(s *batchv1.JobStatus, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

func setJobCondition(s *batchv1.JobStatus, now metav1.Time, kind batchv1.JobConditionType, is corev1.ConditionStatus, reason, message string) {
	c := batchv1.JobCondition{Type: kind, Status: is, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now}
	switch old := jobCondition(s, kind); {
	case old == nil:
		s.Conditions = append(s.Conditions, c)
	case old.Status != is:
		*old = c
	}
}
