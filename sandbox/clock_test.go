// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// stopped is a sandbox whose clock stands still, with a client in the process.
type stopped struct {
	kubernetes.Interface
	*sandbox.Sandbox
	t *testing.T
}

func newStopped(t *testing.T) stopped {
	t.Helper()
	s := sandbox.New(t, sandbox.Options{Clock: sandbox.StoppedClock})
	return stopped{kubernetes.NewForConfigOrDie(s.Config()), s, t}
}

// advance lets time pass.
func (s stopped) advance(d time.Duration) {
	s.t.Helper()
	if err := s.Clock().Advance(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
}

// deploy creates a Deployment and returns what it is like once the workloads are at rest.
func (s stopped) deploy(d *appsv1.Deployment) func() appsv1.DeploymentStatus {
	s.t.Helper()
	if _, err := s.AppsV1().Deployments("default").Create(s.t.Context(), d, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return func() appsv1.DeploymentStatus {
		s.t.Helper()
		s.advance(0)
		out, err := s.AppsV1().Deployments("default").Get(s.t.Context(), d.Name, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		return out.Status
	}
}

// task is the template of a Pod that ends.
func task() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "task", Image: "busybox"}},
	}}
}

func TestACronJobMakesAllJobsOfADay(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	jobs, err := s.BatchV1().Jobs("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Stop()
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}, Spec: batchv1.CronJobSpec{
		Schedule: "0 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: task()}},
	}}
	if _, err := s.BatchV1().CronJobs("default").Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.advance(24 * time.Hour)
	last, err := s.BatchV1().CronJobs("default").Get(t.Context(), "backup", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if late := s.Clock().Now().Sub(last.Status.LastScheduleTime.Time); late < 0 || late >= time.Hour || len(last.Status.Active) > 0 {
		t.Errorf("the last Job was scheduled %s before the end, and %v are active", late, last.Status.Active)
	}
	var times []time.Time
	for event := range jobs.ResultChan() {
		j := event.Object.(*batchv1.Job)
		if event.Type == watch.Added {
			times = append(times, j.CreationTimestamp.Time)
		}
		if len(times) == 24 {
			break
		}
	}
	for i, at := range times {
		if want := times[0].Add(time.Duration(i) * time.Hour); !at.Equal(want) || at.Minute() != 0 {
			t.Fatalf("Job %d was made at %s, want %s", i, at, want)
		}
	}
}

func TestAJobEndsByItsDeadlineAndGoesAfterItsTime(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	if err := s.Workloads().Hold("pods/*"); err != nil {
		t.Fatal(err)
	}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: batchv1.JobSpec{
		ActiveDeadlineSeconds: new(int64(300)), TTLSecondsAfterFinished: new(int32(3600)), Template: task(),
	}}
	if _, err := s.BatchV1().Jobs("default").Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	failed := func() string {
		t.Helper()
		j, err := s.BatchV1().Jobs("default").Get(t.Context(), "work", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range j.Status.Conditions {
			if c.Type == batchv1.JobFailed {
				return c.Reason
			}
		}
		return ""
	}
	s.advance(299 * time.Second)
	if reason := failed(); reason != "" {
		t.Errorf("before its deadline it has failed: %s", reason)
	}
	if err := s.Workloads().Release("pods/*"); err != nil {
		t.Fatal(err)
	}
	if err := s.Workloads().Delay("pods/*", time.Hour); err != nil {
		t.Fatal(err)
	}
	s.advance(31 * time.Second)
	if reason := failed(); reason != batchv1.JobReasonDeadlineExceeded {
		t.Errorf("after its deadline the reason is %q", reason)
	}
	s.advance(time.Hour)
	if _, err := s.BatchV1().Jobs("default").Get(t.Context(), "work", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its time it is there: %v", err)
	}
}

func TestADeploymentPassesItsDeadline(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	if err := s.Workloads().Fail("deployments/web", "ImagePullBackOff"); err != nil {
		t.Fatal(err)
	}
	d := web()
	d.Spec.ProgressDeadlineSeconds = new(int32(900))
	status := s.deploy(d)
	reason := func() string {
		t.Helper()
		for _, c := range status().Conditions {
			if c.Type == appsv1.DeploymentProgressing {
				return c.Reason
			}
		}
		return ""
	}
	status()
	s.advance(14 * time.Minute)
	if got := reason(); got != "ReplicaSetUpdated" {
		t.Errorf("before its deadline it is %s", got)
	}
	s.advance(time.Minute)
	if got := reason(); got != "ProgressDeadlineExceeded" {
		t.Errorf("after its deadline it is %s", got)
	}
	if err := s.Workloads().Release("deployments/web"); err != nil {
		t.Fatal(err)
	}
	if n := status().ReadyReplicas; n != 2 {
		t.Errorf("after its release %d Pods are ready", n)
	}
}

// TestARolloutTakesSeveralTimers holds that what a timer begins has its own timers in the same Advance: each Pod is ready after
// ten minutes, and available after ten more, before the next one is replaced.
func TestARolloutTakesSeveralTimers(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	if err := s.Workloads().Delay("pods/*", 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	d := web()
	d.Spec.MinReadySeconds, d.Spec.ProgressDeadlineSeconds = 600, new(int32(3600))
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}
	status := s.deploy(d)
	if got := status(); got.Replicas != 2 || got.ReadyReplicas != 0 {
		t.Errorf("at once: %+v", got)
	}
	s.advance(20 * time.Minute)
	if got := status(); got.AvailableReplicas != 2 {
		t.Errorf("after 20 minutes: %+v", got)
	}
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"httpd"}]}}}}`)
	if _, err := s.AppsV1().Deployments("default").Patch(t.Context(), "web", "application/strategic-merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.advance(39 * time.Minute)
	if got := status(); got.UpdatedReplicas == 2 && got.AvailableReplicas == got.Replicas && got.Replicas == 2 {
		t.Errorf("before 40 minutes the rollout is complete: %+v", got)
	}
	s.advance(21 * time.Minute)
	if got := status(); got.UpdatedReplicas != 2 || got.AvailableReplicas != 2 || got.Replicas != 2 {
		t.Errorf("after an hour: %+v", got)
	}
}

func TestANamespaceEndsWhileTheClockStands(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	if _, err := s.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := web()
	if _, err := s.AppsV1().Deployments("shop").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.advance(0)
	if err := s.CoreV1().Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.advance(0)
	if _, err := s.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

func TestAStoppedClockGoesOnWhereItStood(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Clock: sandbox.StoppedClock, Keep: t.TempDir()}
	first := sandbox.New(t, o)
	if err := first.Clock().Advance(t.Context(), 1000*time.Hour); err != nil {
		t.Fatal(err)
	}
	first.Stop()
	if now := sandbox.New(t, o).Clock().Now(); !now.Equal(first.Clock().Now()) {
		t.Errorf("the next clock stands at %s, the first one at %s", now, first.Clock().Now())
	}
}

func TestTwoAdvancesAtOnceFollowEachOther(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	s.deploy(web())
	before := s.Clock().Now()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := s.Clock().Advance(t.Context(), time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if passed := s.Clock().Now().Sub(before); passed != 2*time.Hour {
		t.Errorf("%s have passed", passed)
	}
}

func TestAClockIsNotAdvanced(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		mode sandbox.ClockMode
		ctx  context.Context
		by   time.Duration
		stop bool
		want error
		says string
	}{
		"of the machine":             {mode: sandbox.RealClock, ctx: t.Context(), want: sandbox.ErrRealClock},
		"after the end":              {mode: sandbox.StoppedClock, ctx: t.Context(), stop: true, want: sandbox.ErrStopped},
		"after the end of a context": {mode: sandbox.StoppedClock, ctx: ended, want: context.Canceled},
		"back":                       {mode: sandbox.StoppedClock, ctx: t.Context(), by: -time.Hour, says: "advancing the clock: time does not go back by 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sandbox.New(t, sandbox.Options{Clock: c.mode})
			if c.stop {
				s.Stop()
			}
			before := s.Clock().Now()
			err := s.Clock().Advance(c.ctx, c.by)
			if c.want != nil && !errors.Is(err, c.want) || c.want == nil && fmt.Sprint(err) != c.says {
				t.Errorf("the error is %v", err)
			}
			if c.mode == sandbox.StoppedClock && !s.Clock().Now().Equal(before) {
				t.Errorf("it is %s, and was %s", s.Clock().Now(), before)
			}
		})
	}
}

func TestAnAdvanceEndsWithTheSandbox(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "often"}, Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: task()}},
	}}
	jobs, err := s.BatchV1().Jobs("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BatchV1().CronJobs("default").Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Clock().Advance(t.Context(), 100*365*24*time.Hour) }()
	<-jobs.ResultChan()
	jobs.Stop()
	s.Stop()
	if err := <-ended; !errors.Is(err, sandbox.ErrStopped) {
		t.Errorf("the error is %v", err)
	}
}
