// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the components. They are also the names of the programs and of the log files.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// shortNames are what --without and --arg understand besides the full names.
var shortNames = map[string]string{
	"apiserver": APIServer,
	"kcm":       ControllerManager,
	"scheduler": Scheduler,
}

// Settings says what [Run] starts and where.
type Settings struct {
	// Dir holds all state of the control plane. Required. Made if it is not there.
	Dir string
	// Port is the API server's. Zero takes the port that was last used in Dir, if it is free,
	// otherwise any free one.
	Port int
	// Without names components that are not started. etcd and kube-apiserver cannot be in it.
	Without []string
	// Audit makes the API server write Dir/audit.log.
	Audit bool
	// AuditPolicy is the file of the audit policy. Empty stands for one line at Metadata level
	// for each request that was answered.
	AuditPolicy string
	// CRDs are files, or folders of YAML files, whose CustomResourceDefinitions exist from the start. The garbage
	// collector looks for new kinds only every 30 seconds.
	CRDs []string
	// FeatureGates goes to kube-apiserver, kube-controller-manager and kube-scheduler.
	FeatureGates string
	// Extra are further arguments by component. They come last, so they win.
	Extra map[string][]string
}

// Has says whether the component of that name is to be started.
func (s Settings) Has(name string) bool { return !slices.Contains(s.Without, name) }

// usageError is a mistake in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// ParseStart reads the arguments of the start command. For --help it prints the help to out and
// returns [flag.ErrHelp].
func ParseStart(args []string, out io.Writer) (Settings, error) {
	s := Settings{Extra: map[string][]string{}}
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Main prints the error, once
	flags.StringVar(&s.Dir, "dir", "", "`folder` of the data, certificates, logs and the kubeconfig; one that was used before goes on where it stopped")
	flags.IntVar(&s.Port, "port", 0, "`port` of the API server on 127.0.0.1 (default: the one last used in the folder, or a free one)")
	flags.Func("without", "comma-separated `components` to leave out: kcm, scheduler, kwok", s.addWithout)
	flags.BoolVar(&s.Audit, "audit", false, "write each answered request as a line of JSON to audit.log in the folder")
	flags.StringVar(&s.AuditPolicy, "audit-policy", "", "audit with the policy in this `file` (implies --audit)")
	flags.Func("crds", "`file` or folder with CRDs to apply before the controllers start, so that garbage collection knows them at once; may be repeated", s.addCRDs)
	flags.StringVar(&s.FeatureGates, "feature-gates", "", "comma-separated `gates`, such as WatchList=false, for kube-apiserver, kcm and scheduler")
	flags.Func("arg", "a further argument of a component, as `component=--flag=value`; may be repeated", s.addExtra)

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return s, err
	}
	if err != nil {
		return s, usageError(err.Error())
	}
	return s, s.finish(flags.Args())
}

// finish checks what was parsed and makes the paths absolute, as components run in the folder.
func (s *Settings) finish(rest []string) error {
	switch {
	case len(rest) > 0:
		return usageError(fmt.Sprintf("unexpected argument %q", rest[0]))
	case s.Dir == "":
		return usageError("--dir is missing")
	case s.Port < 0 || s.Port > 65535:
		return usageError(fmt.Sprintf("--port %d is no port", s.Port))
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return fmt.Errorf("resolving %s: %w", s.Dir, err)
	}
	s.Dir = dir
	if s.AuditPolicy == "" {
		return nil
	}
	s.Audit = true
	if s.AuditPolicy, err = filepath.Abs(s.AuditPolicy); err != nil {
		return fmt.Errorf("resolving %s: %w", s.AuditPolicy, err)
	}
	return nil
}

func (s *Settings) addWithout(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		full := fullName(name)
		if full != ControllerManager && full != Scheduler && full != Kwok {
			return fmt.Errorf("%q is not one of kcm, scheduler and kwok", name)
		}
		s.Without = append(s.Without, full)
	}
	return nil
}

func (s *Settings) addExtra(arg string) error {
	name, value, found := strings.Cut(arg, "=")
	name = fullName(name)
	if !found || !known(name) || !strings.HasPrefix(value, "-") {
		return errors.New("want component=--flag=value")
	}
	s.Extra[name] = append(s.Extra[name], value)
	return nil
}

func (s *Settings) addCRDs(path string) error {
	s.CRDs = append(s.CRDs, path)
	return nil
}

func fullName(name string) string {
	if full, found := shortNames[name]; found {
		return full
	}
	return name
}

func known(name string) bool {
	return slices.Contains([]string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}, name)
}
