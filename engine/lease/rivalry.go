// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rivalry is a sink for what client-go's elector logs: that another process was faster is the
// rule of the game and no error.
type rivalry struct{ logr.LogSink }

// withRivalry returns a logger for an elector.
func withRivalry(log logr.Logger) logr.Logger {
	if sink := log.GetSink(); sink != nil {
		return log.WithSink(rivalry{sink})
	}
	return log
}

// Error logs an error, but a lost race as information for those who look closely.
func (r rivalry) Error(err error, message string, values ...any) {
	switch {
	case !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err):
		r.LogSink.Error(err, message, values...)
	case r.Enabled(1):
		r.Info(1, message, append(slices.Clip(values), "reason", err.Error())...)
	}
}

// WithValues keeps the sink what it is.
func (r rivalry) WithValues(values ...any) logr.LogSink {
	return rivalry{r.LogSink.WithValues(values...)}
}

// WithName keeps the sink what it is.
func (r rivalry) WithName(name string) logr.LogSink { return rivalry{r.LogSink.WithName(name)} }
