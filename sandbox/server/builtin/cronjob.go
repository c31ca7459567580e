// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longestCronJob is the longest name of a CronJob: its Jobs' names have a time as well.
const longestCronJob = 52

func checkCronJob(f *findings, next, old *batchv1.CronJob) {
	s := &next.Spec
	if path := spec().Child("schedule"); f.declared(path, s.Schedule) {
		checkSchedule(f, path, s.Schedule)
	}
	notNegativeIf(f, spec().Child("startingDeadlineSeconds"), s.StartingDeadlineSeconds)
	if s.TimeZone != nil && (old == nil || old.Spec.TimeZone == nil || *old.Spec.TimeZone != *s.TimeZone) {
		checkTimeZone(f, spec().Child("timeZone"), *s.TimeZone)
	}
	oneOf(f, spec().Child("concurrencyPolicy"), s.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	template := spec().Child("jobTemplate", "spec")
	checkJobSpec(f, template, &s.JobTemplate.Spec)
	if s.JobTemplate.Spec.Selector != nil {
		f.invalid(template.Child("selector"), s.JobTemplate.Spec.Selector, "`selector` will be auto-generated")
	}
	if manual := s.JobTemplate.Spec.ManualSelector; manual != nil && *manual {
		f.list = append(f.list, field.NotSupported(template.Child("manualSelector"), manual, []string{"nil", "false"}))
	}
	notNegativeIf(f, spec().Child("successfulJobsHistoryLimit"), s.SuccessfulJobsHistoryLimit)
	notNegativeIf(f, spec().Child("failedJobsHistoryLimit"), s.FailedJobsHistoryLimit)
	if old == nil && len(next.Name) > longestCronJob {
		f.invalid(field.NewPath("metadata", "name"), next.Name, "must be no more than 52 characters")
	}
}

// checkTimeZone checks the time zone of a schedule, which does not depend on where a controller runs.
func checkTimeZone(f *findings, path *field.Path, zone string) {
	switch {
	case zone == "":
		f.invalid(path, zone, "timeZone must be nil or non-empty string")
	case strings.EqualFold(zone, "Local"):
		f.invalid(path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	default:
		if _, err := time.LoadLocation(zone); err != nil {
			f.invalid(path, zone, err.Error())
		}
	}
}

// checkSchedule checks a schedule. The parser panics on some.
func checkSchedule(f *findings, path *field.Path, schedule string) {
	defer func() {
		if r := recover(); r != nil {
			f.invalid(path, schedule, fmt.Sprintf("invalid schedule format: %v", r))
		}
	}()
	if _, err := cron.ParseStandard(schedule); err != nil {
		f.invalid(path, schedule, err.Error())
	}
	if strings.Contains(schedule, "TZ") {
		f.invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	}
}
