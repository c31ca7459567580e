// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scheduledAnnotation is the time for which a CronJob has made a Job.
const scheduledAnnotation = "batch.kubernetes.io/cronjob-scheduled-timestamp"

// stepCronJob makes a Job when one is due, and deletes old ones.
func stepCronJob(l *loop, c *batchv1.CronJob, _ Rule) error {
	next := c.Status.DeepCopy()
	var err error
	if c.DeletionTimestamp == nil {
		if err = l.prune(c); err == nil && (c.Spec.Suspend == nil || !*c.Spec.Suspend) {
			err = l.launch(c, next)
		}
	}
	next.Active = nil
	for _, j := range listOf[*batchv1.Job](l.caches["Job"].of(c.UID)) {
		end := jobEnd(j)
		if end == nil {
			next.Active = append(next.Active, corev1.ObjectReference{
				APIVersion: "batch/v1", Kind: "Job", Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: bornAs(c, j),
			})
			continue
		} else if isActive(c, j) {
			l.events.normal(l.ctx, c, cronJobController, "SawCompletedJob", "Saw completed job: %s, condition: %s", j.Name, end.Type)
		}
		if at := j.Status.CompletionTime; end.Type == batchv1.JobComplete && at != nil && (next.LastSuccessfulTime == nil || next.LastSuccessfulTime.Before(at)) {
			next.LastSuccessfulTime = at
		}
	}
	if wrote := l.status("CronJob", c, controllers, c.Status, *next); wrote != nil {
		return wrote
	}
	return err
}

// isActive reports whether the status of a CronJob has a Job.
func isActive(c *batchv1.CronJob, j *batchv1.Job) bool {
	return slices.ContainsFunc(c.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == j.UID })
}

// bornAs returns the version in which a CronJob knows an active Job: that at which it was entered.
func bornAs(c *batchv1.CronJob, j *batchv1.Job) string {
	for _, ref := range c.Status.Active {
		if ref.UID == j.UID {
			return ref.ResourceVersion
		}
	}
	return j.ResourceVersion
}

// launch makes the Job that is due, and queues the CronJob for the next one.
func (l *loop) launch(c *batchv1.CronJob, next *batchv1.CronJobStatus) error {
	schedule, err := scheduleOf(c)
	if err != nil {
		l.events.warning(l.ctx, c, cronJobController, "UnparseableSchedule", "unparseable schedule: %q : %s", c.Spec.Schedule, err)
		return nil // a change of the CronJob is seen
	}
	now := l.clock.Now()
	following := schedule.Next(now)
	if following.IsZero() {
		l.events.warning(l.ctx, c, cronJobController, "InvalidSchedule", "invalid schedule: %s : time difference between two schedules is less than 1 second", c.Spec.Schedule)
		return nil // it never comes
	}
	l.later("CronJob", c, following.Sub(now))
	since := c.CreationTimestamp.Time
	if c.Status.LastScheduleTime != nil {
		since = c.Status.LastScheduleTime.Time
	}
	at := latest(schedule, since, now)
	if at.IsZero() {
		return nil
	}
	if seconds := c.Spec.StartingDeadlineSeconds; seconds != nil && now.Sub(at) > time.Duration(*seconds)*time.Second {
		return nil
	}
	for _, j := range listOf[*batchv1.Job](l.caches["Job"].of(c.UID)) {
		switch {
		case jobEnd(j) != nil || j.DeletionTimestamp != nil:
		case c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent:
			l.events.normal(l.ctx, c, cronJobController, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
			return nil
		case c.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent:
			if err := l.deleteJob(c, j); err != nil {
				return err
			}
		}
	}
	job := jobAt(c, at)
	switch err := l.create("Job", job, controllers); {
	case err == nil:
		l.events.normal(l.ctx, c, cronJobController, "SuccessfulCreate", "Created job %s", job.Name)
	case !apierrors.IsAlreadyExists(err):
		return err
	}
	stamp := metav1.NewTime(at)
	next.LastScheduleTime = &stamp
	return nil
}

func scheduleOf(c *batchv1.CronJob) (cron.Schedule, error) {
	text := c.Spec.Schedule
	if c.Spec.TimeZone != nil {
		text = "TZ=" + *c.Spec.TimeZone + " " + text
	}
	return cron.ParseStandard(text)
}

// latest returns the last time of a schedule after one time and not after another; zero if there is none. It looks
// at short spans first, so that a long one with many times costs little.
func latest(schedule cron.Schedule, since, now time.Time) (out time.Time) {
	for _, back := range []time.Duration{2 * time.Minute, 2 * time.Hour, 48 * time.Hour, 60 * 24 * time.Hour, 5 * 366 * 24 * time.Hour} {
		from := now.Add(-back)
		if from.Before(since) {
			from = since
		}
		for at := schedule.Next(from); !at.IsZero() && !at.After(now); at = schedule.Next(at) {
			out = at
		}
		if !out.IsZero() || from.Equal(since) {
			return out
		}
	}
	return out
}

func jobAt(c *batchv1.CronJob, at time.Time) *batchv1.Job {
	t := c.Spec.JobTemplate.DeepCopy()
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, at.Unix()/60), Labels: t.Labels,
		Annotations:     with(t.Annotations, scheduledAnnotation, at.Format(time.RFC3339)),
		OwnerReferences: ownedBy(c, "CronJob"),
	}, Spec: t.Spec}
}

// prune deletes the oldest Jobs that have ended and are more than the CronJob wants to keep.
func (l *loop) prune(c *batchv1.CronJob) error {
	keep := map[batchv1.JobConditionType]int{batchv1.JobComplete: 3, batchv1.JobFailed: 1}
	if n := c.Spec.SuccessfulJobsHistoryLimit; n != nil {
		keep[batchv1.JobComplete] = int(*n)
	}
	if n := c.Spec.FailedJobsHistoryLimit; n != nil {
		keep[batchv1.JobFailed] = int(*n)
	}
	jobs := listOf[*batchv1.Job](l.caches["Job"].of(c.UID))
	slices.SortStableFunc(jobs, func(a, b *batchv1.Job) int { return cmp.Compare(b.Name, a.Name) })
	slices.SortStableFunc(jobs, func(a, b *batchv1.Job) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, j := range jobs {
		end := jobEnd(j)
		if end == nil || j.DeletionTimestamp != nil {
			continue
		}
		if keep[end.Type]--; keep[end.Type] >= 0 {
			continue
		}
		if err := l.deleteJob(c, j); err != nil {
			return err
		}
	}
	return nil
}

// deleteJob deletes a Job of a CronJob, and records an Event about it.
func (l *loop) deleteJob(c *batchv1.CronJob, j *batchv1.Job) error {
	if err := l.delete("Job", j, nil); err != nil {
		return err
	}
	l.events.normal(l.ctx, c, cronJobController, "SuccessfulDelete", "Deleted job %s", j.Name)
	return nil
}
