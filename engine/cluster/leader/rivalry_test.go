// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRivalry(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	taken, changed := apierrors.NewAlreadyExists(leases, "lock"), apierrors.NewConflict(leases, "lock", errors.New("changed"))
	for _, verbosity := range []int{0, 1} {
		var lines []string
		log := withRivalry(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: verbosity})).WithName("n").WithValues("a", "b")
		log.Error(errors.New("broken"), "one")
		log.Error(taken, "two")
		log.Error(changed, "three")
		want := []string{`"msg"="reading or writing the lock failed; it is retried" "error"="broken" "a"="b"`}
		if verbosity == 1 {
			want = append(want, `"level"=1 "msg"="two" "a"="b" "reason"="leases.coordination.k8s.io \"lock\" already exists"`,
				`"level"=1 "msg"="three" "a"="b" "reason"="Operation cannot be fulfilled on leases.coordination.k8s.io \"lock\": changed"`)
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("lines at verbosity %d (-want +got):\n%s", verbosity, diff)
		}
	}
	withRivalry(logr.Discard()).Error(taken, "no one listens")
}

// TestALockThatIsRefusedIsSaidOnce holds that what fails at each try, each few seconds, is a line when it begins,
// when it fails otherwise, and when it comes back.
func TestALockThatIsRefusedIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := withRivalry(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
		refused, broken := errors.New("refused"), errors.New("broken")
		for range 100 {
			log.WithName("again").Error(refused, "Error retrieving lease lock")
			time.Sleep(3 * time.Second)
		}
		log.Error(broken, "Failed to update lock")
		time.Sleep(time.Hour)
		log.Error(broken, "Failed to update lock")
		log.Info("Failed to renew lease", "err", "context canceled")
		line := func(text string) string {
			return `"msg"="reading or writing the lock failed; it is retried" "error"="` + text + `"`
		}
		if diff := cmp.Diff([]string{line("refused"), line("broken"), line("broken")}, lines); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}
