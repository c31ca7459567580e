// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// logFlags are the --zap-* flags of controller-runtime.
type logFlags struct {
	devel                       bool
	encoder, level, stack, time string
	// terminal reports whether a writer is a terminal; nil means never.
	terminal func(io.Writer) bool
}

func (f *logFlags) add(set *pflag.FlagSet) {
	set.BoolVar(&f.devel, "zap-devel", false,
		"log for people at a terminal: encoder console, level debug")
	addChoice(set, &choice{value: &f.encoder, noun: "encoder", words: []string{"json", "console"}},
		"zap-encoder", "", "how log lines are written, by default console on a terminal and json elsewhere")
	set.StringVar(&f.level, "zap-log-level", "",
		"log from this `level` on: debug, info, error, panic, or a number above 0 for more detail")
	addChoice(set, &choice{value: &f.stack, noun: "level", words: []string{"info", "error", "panic"}},
		"zap-stacktrace-level", "", "add stack traces from this level on, by default panic")
	times := []string{"epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"}
	addChoice(set, &choice{value: &f.time, noun: "encoding", words: times},
		"zap-time-encoding", "", "how times are written, by default rfc3339")
}

func (f *logFlags) check() error {
	_, err := f.enabled()
	return err
}

// logger returns a logger that writes to w. The verbosity is the highest V-level that is written.
func (f *logFlags) logger(w io.Writer) (log logr.Logger, verbosity int) {
	level, _ := f.enabled() // it was checked before
	out := zapcore.Lock(zapcore.AddSync(w))
	console := f.console(w)
	var core zapcore.Core = marked{zapcore.NewCore(f.encoding(console), out, level), console}
	if !f.devel && level >= zapcore.InfoLevel {
		// Repeated messages are sampled, except with debug logging.
		core = zapcore.NewSamplerWithOptions(core, time.Second, 100, 100)
	}
	z := zap.New(core, zap.AddStacktrace(f.stacks()), zap.ErrorOutput(out))
	return zapr.NewLogger(z), max(0, -int(level))
}

func (f *logFlags) enabled() (zapcore.Level, error) {
	switch strings.ToLower(f.level) {
	case "":
		if f.devel {
			return zapcore.DebugLevel, nil
		}
		return zapcore.InfoLevel, nil
	case "debug":
		return zapcore.DebugLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "panic":
		return zapcore.PanicLevel, nil
	}
	detail, err := strconv.ParseInt(f.level, 10, 8)
	if err != nil || detail <= 0 {
		return 0, fmt.Errorf("invalid value %q for --zap-log-level: want debug, info, error, panic or a number from 1 to 127", f.level)
	}
	return zapcore.Level(-detail), nil
}

// console reports whether log lines are for people.
func (f *logFlags) console(w io.Writer) bool {
	if f.encoder == "" {
		return f.devel || f.terminal != nil && f.terminal(w)
	}
	return f.encoder == "console"
}

func (f *logFlags) encoding(console bool) zapcore.Encoder {
	if console {
		config := zap.NewDevelopmentEncoderConfig()
		config.EncodeTime = f.times()
		return oneLine{zapcore.NewConsoleEncoder(config), true}
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = f.times()
	return oneLine{zapcore.NewJSONEncoder(config), false}
}

func (f *logFlags) stacks() zapcore.Level {
	switch f.stack {
	case "info":
		return zapcore.InfoLevel
	case "error":
		return zapcore.ErrorLevel
	default:
		return zapcore.PanicLevel
	}
}

func (f *logFlags) times() zapcore.TimeEncoder {
	switch f.time {
	case "epoch":
		return zapcore.EpochTimeEncoder
	case "millis":
		return zapcore.EpochMillisTimeEncoder
	case "nano":
		return zapcore.EpochNanosTimeEncoder
	case "iso8601":
		return zapcore.ISO8601TimeEncoder
	case "rfc3339nano":
		return zapcore.RFC3339NanoTimeEncoder
	default:
		return zapcore.RFC3339TimeEncoder
	}
}

// adoptGlobals redirects to log what is logged without a logger: klog's lines, at the same verbosity, and errors
// that the API machinery cannot return. It changes the process, and is not safe while other code logs.
func adoptGlobals(log logr.Logger, verbosity int) {
	global := log
	if sink := log.GetSink(); sink != nil {
		global = log.WithSink(gateless{sink})
	}
	klog.SetLoggerWithOptions(global, klog.ContextualLogger(true))
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	// The flag exists and accepts numbers.
	_ = set.Set("v", strconv.Itoa(verbosity))
	runtime.ErrorHandlers = []runtime.ErrorHandler{logUnhandled}
}

// logUnhandled logs an error of the API machinery. It ignores the end of a context, which is normal at shutdown.
func logUnhandled(ctx context.Context, err error, message string, keysAndValues ...any) {
	log := klog.FromContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.V(1).Info(message, append(keysAndValues, "err", err)...)
		return
	}
	log.Error(err, message, keysAndValues...)
}

// gateless is a sink that logs the settings of client-go's features only above debug level: there are twenty such
// lines at each start.
type gateless struct{ logr.LogSink }

// Info logs a line of information.
func (g gateless) Info(level int, message string, values ...any) {
	if !strings.HasPrefix(message, "Feature gate ") || g.Enabled(2) {
		g.LogSink.Info(level, message, values...)
	}
}

// WithValues returns a sink of the same type.
func (g gateless) WithValues(values ...any) logr.LogSink {
	return gateless{g.LogSink.WithValues(values...)}
}

// WithName returns a sink of the same type.
func (g gateless) WithName(name string) logr.LogSink { return gateless{g.LogSink.WithName(name)} }
