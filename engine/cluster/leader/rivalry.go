// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rivalry is a sink for what client-go's elector logs: that another process was faster is the
// rule of the game and no error, and what goes on failing is said once.
type rivalry struct {
	logr.LogSink
	said *said
}

// said is the last error that a campaign logged.
type said struct {
	mu   sync.Mutex
	text string
	last time.Time
}

// forgotten is the time after which an error is logged again.
const forgotten = time.Minute

// again notes an error and reports whether it came a moment ago, too.
func (s *said) again(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.text == err.Error() && time.Since(s.last) < forgotten
	s.text, s.last = err.Error(), time.Now()
	return known
}

// withRivalry returns a logger for an elector.
func withRivalry(log logr.Logger) logr.Logger {
	if sink := log.GetSink(); sink != nil {
		return log.WithSink(rivalry{sink, &said{}})
	}
	return log
}

// Error logs an error, but a lost race, and what is said already, as information for those who look closely.
func (r rivalry) Error(err error, message string, values ...any) {
	switch {
	case !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !r.said.again(err):
		r.LogSink.Error(err, "reading or writing the lock failed; it is retried", values...)
	case r.Enabled(1):
		r.LogSink.Info(1, message, append(slices.Clip(values), "reason", err.Error())...)
	}
}

// Info logs information. It drops the line about a lease that was not renewed: the line about the end of the term has the
// reason.
func (r rivalry) Info(level int, message string, values ...any) {
	if message == "Failed to renew lease" {
		level = max(level, 1)
	}
	if r.Enabled(level) {
		r.LogSink.Info(level, message, values...)
	}
}

func (r rivalry) WithValues(values ...any) logr.LogSink {
	return rivalry{r.LogSink.WithValues(values...), r.said}
}

func (r rivalry) WithName(name string) logr.LogSink {
	return rivalry{r.LogSink.WithName(name), r.said}
}
