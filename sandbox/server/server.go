// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
	"github.com/handwerk-dev/handwerk/sandbox/server/admission"
	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Server is an API server. Its methods are safe for use by several goroutines.
type Server struct {
	schemas Schemas // nil means that objects are taken as they are
	clock   clock.Clock
	prompt  bool
	// history and bookmarks are those of the settings.
	history   int
	bookmarks time.Duration
	rarer     bool
	ownWrites func(OwnWrite)
	// unenforced, decided, unsettled and unfurnished are those of the settings.
	unenforced  func(string)
	decided     func(string)
	unsettled   func(string)
	unfurnished bool
	// network leads calls to webhooks in the process.
	network network
	// requests is the number of the last request.
	requests atomic.Int64
	// parts are buffers in which parts of lists and watches are encoded: without them, half of the garbage would be such.
	parts sync.Pool

	published published

	mu sync.Mutex
	// garbage is that of the collector; nil if the server has none.
	garbage *garbage
	owners  ownership
	// chain has the admission plugins; nil if there are none.
	chain   *admission.Chain
	version int64 // of the last write; all resources share it
	// compaction drops old versions.
	compaction compaction
	uids       int
	tables     map[schema.GroupResource]*table
	// conversions are called in place of webhooks, by the names of CRDs.
	conversions map[string]Conversion
	broken      map[string]bool // API groups that do not answer
	denied      []Rule
	// certificate is the one of the listener in PEM; empty if there is none.
	certificate string
	// authorizes: roles say what a user may do. policy has them; nil if they are to be read again.
	authorizes bool
	policy     *rbac.Policy
	// roles are the objects of RBAC that were decoded for the policy, by their rows.
	roles  map[*store.Row]any
	tokens map[string]bearer
	// admissions has the policies and the webhooks; nil if they are to be read again. compiled are those that were read, by their rows.
	admissions *admissions
	compiled   map[*store.Row]any
	// key signs the tokens of ServiceAccounts; nil before the first one.
	key *ecdsa.PrivateKey
	dry bool // the request at hand is a dry run: nothing is stored
	// itself: what is written now is an own write, and unseen are those that were not shown yet.
	itself  bool
	unseen  []OwnWrite
	lagging *discoveryv2.APIGroupDiscoveryList // the frozen discovery; nil if it is current
}

// Settings say how much of a real API server a server is. The zero value is one that takes objects as they are.
type Settings struct {
	// Schemas are the schemas by which objects are defaulted, pruned and validated; nil means that they are not.
	Schemas Schemas
	// Clock tells the time of objects and of what the controllers of their lives do; nil means that of the machine. Clients wait
	// for bookmarks and for the ends of watches, so these come by the clock of the machine in any case.
	Clock clock.Clock
	// Prompt makes the controllers of the lives of objects act at once. Without it they take as long to notice a write as those
	// of a real server, which would be forever by a clock that stands still.
	Prompt bool
	// History is how many changes of a resource a client can catch up with; 0 means all. At most twice as many are
	// kept. A watch that is as many changes behind ends.
	History int
	// Bookmarks is the time between the bookmarks of a watch that allows them; 0 means that it gets none but that
	// after the first objects.
	Bookmarks time.Duration
	// Rarer makes a watch wait a fifth longer for each bookmark than for the one before, so that they cost little when days
	// pass in virtual time. A client that gives a watch a quarter more than its longest pause does not take it for silent.
	Rarer bool
	// Admission makes the server complete and refuse objects as the admission plugins of a usual cluster do.
	Admission bool
	// Controllers makes the server play the controllers of the lives of objects: it collects garbage, gives each
	// namespace its ServiceAccount and its ConfigMap, and has all namespaces of a new cluster.
	Controllers bool
	// Unfurnished leaves namespaces without ServiceAccount and ConfigMap, as on a real server without a controller manager. Pods
	// need no ServiceAccount then, and storage is not protected while it is in use.
	Unfurnished bool
	// Authorize makes the roles and bindings of RBAC decide what a user may do. Without it everything is allowed that
	// [Server.Forbid] does not take away.
	Authorize bool
	// OwnWrites, if set, is called after each write that the server makes by itself, and may call the server.
	OwnWrites func(OwnWrite)
	// Unenforced, if set, is called for each object that is stored and has no effect, with a text that says so. It must not call
	// the server.
	Unenforced func(text string)
	// Decided, if set, is called for each request that an admission policy is about, once its match conditions hold, with the
	// name of the policy. It must not call the server.
	Decided func(policy string)
	// Unsettled, if set, is called for each mutating policy that changes an object again if it runs on its own result, with its
	// name. Webhooks are not asked twice: somebody may count their calls. It must not call the server.
	Unsettled func(name string)
	// AllKinds makes the server serve all built-in kinds of a usual cluster, also those that few operators use.
	AllKinds bool
}

// New returns a server with the usual built-in resources and the namespaces default and kube-system.
func New(settings Settings) *Server {
	if settings.Clock == nil {
		settings.Clock = clock.Real{}
	}
	if settings.Decided == nil {
		settings.Decided = func(string) {}
	}
	s := &Server{
		schemas: settings.Schemas, clock: settings.Clock, prompt: settings.Prompt, history: settings.History, bookmarks: settings.Bookmarks, rarer: settings.Rarer, ownWrites: settings.OwnWrites, unenforced: settings.Unenforced, decided: settings.Decided, unsettled: settings.Unsettled, unfurnished: settings.Unfurnished,
		tables: map[schema.GroupResource]*table{}, conversions: map[string]Conversion{}, broken: map[string]bool{},
		tokens: map[string]bearer{}, roles: map[*store.Row]any{}, authorizes: settings.Authorize, parts: sync.Pool{New: newPart},
		owners: ownership{strict: settings.Schemas != nil, clock: settings.Clock},
	}
	s.chain = s.newChain(settings)
	for _, r := range settings.resources() {
		s.tables[r.name()] = s.newBuiltin(r)
	}
	s.tables[newEvents()].share(s.tables[coreEvents()], eventFields())
	names := []string{"default", "kube-system"}
	if settings.Controllers {
		s.garbage = newGarbage()
		names = append(names, "kube-node-lease", "kube-public")
	}
	for _, name := range names {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(name)
		r := Request{Resource: namespaces().WithVersion("v1"), agent: apiServer}
		if _, err := s.create(s.tables[namespaces()], r, namespace); err != nil {
			panic("server: " + err.Error()) // not reached: the names are free
		}
	}
	if settings.Authorize {
		s.bootstrap()
	}
	s.publish()
	return s
}

// Break makes an API group answer only 503, like one whose aggregated server is down. Mend ends that.
func (s *Server) Break(group string) { s.setBroken(group, true) }

// Mend is the opposite of Break.
func (s *Server) Mend(group string) { s.setBroken(group, false) }

func (s *Server) setBroken(group string, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[group] = broken
}

// Hold holds back watch events of the resources until Release. New watches list the current objects, and get later
// events at Release, too. Lists are not affected.
func (s *Server) Hold(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.hold(true) })
}

// Release sends the events that Hold held back.
func (s *Server) Release(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.hold(false) })
}

// Cut ends the watches of the resources. A client that resumes has no gap.
func (s *Server) Cut(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.cut() })
}

// Expire ends the watches of the resources and drops their history: clients must list again, and held events are
// lost.
func (s *Server) Expire(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.expire(s.version) })
}

// Snapshot records all objects and the version, like a backup of etcd. The returned function restores them:
// versions continue from there, and watches end as expired.
func (s *Server) Snapshot() (restore func()) {
	back := s.backup()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		back()
		for _, t := range s.tables {
			t.expire(s.version)
		}
	}
}

// Backup is Snapshot, but restoring leaves watches open. A watch that is resumed from a version which the server
// has yet to reach is silent until then.
func (s *Server) Backup() (restore func()) {
	back := s.backup()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		back()
	}
}

// backup is Backup for callers that hold the lock while restoring.
func (s *Server) backup() (restoreLocked func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, saved := s.version, map[*table]func(int64){}
	for _, t := range s.tables {
		saved[t] = t.objects.Backup()
	}
	return func() {
		s.version, s.policy, s.admissions = version, nil, nil
		for _, t := range s.tables {
			if back, found := saved[t]; found {
				back(version)
			} else {
				t.objects.Empty(version)
			}
		}
		if s.garbage != nil {
			s.recount()
		}
	}
}

// Withdraw stops serving the resources, whose objects stay, and ends their watches.
func (s *Server) Withdraw(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) {
		t.withdrawn = true
		t.cut()
	})
}

// Restore is the opposite of Withdraw.
func (s *Server) Restore(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.withdrawn = false })
}

// Omit hides an object from lists of the resource, and from watches that begin with one, or shows it again. The
// object exists all the same.
func (s *Server) Omit(resource schema.GroupResource, namespace, name string, omit bool) {
	s.each([]schema.GroupResource{resource}, func(t *table) {
		t.omitted[types.NamespacedName{Namespace: namespace, Name: name}] = omit
	})
}

// Rewrite makes the server change all objects that are written to a resource, status included, before it stores
// them. The returned function ends that.
func (s *Server) Rewrite(resource schema.GroupResource, change func(*unstructured.Unstructured)) (end func()) {
	r := &rewriting{change}
	s.each([]schema.GroupResource{resource}, func(t *table) { t.rewrites = append(t.rewrites, r) })
	return func() {
		s.each([]schema.GroupResource{resource}, func(t *table) {
			t.rewrites = slices.DeleteFunc(t.rewrites, func(each *rewriting) bool { return each == r })
		})
	}
}

// Load stores an object as it is, with a new version.
func (s *Server) Load(resource schema.GroupResource, o *unstructured.Unstructured) {
	s.each([]schema.GroupResource{resource}, func(t *table) { s.commit(t, store.Added, o) })
}

// each calls do for these served resources, or for all if none are named.
func (s *Server) each(resources []schema.GroupResource, do func(*table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.tables {
		if len(resources) == 0 || slices.Contains(resources, name) {
			do(t)
		}
	}
}

// commit stores a write: it assigns a version and notifies the watches. For a removal, next is the last object. It
// returns the stored object.
func (s *Server) commit(t *table, what store.EventType, next *unstructured.Unstructured) *unstructured.Unstructured {
	completed := t.complete(what, next)
	if s.dry {
		return next
	}
	if delete(t.partial, next.GetUID()); completed && what != store.Deleted {
		t.partial[next.GetUID()] = true
	}
	s.compacted() // the version until now may be the one that is going to be dropped
	s.version++
	next.SetResourceVersion(strconv.FormatInt(s.version, 10))
	stored, again := t.inStorage(next)
	seen := s.noteOwn(t, next)
	change := t.objects.Commit(what, t.asStored(stored))
	seen()
	t.note(change)
	switch t.group {
	case services().Group:
		if t.plural == services().Resource {
			s.network.follow(next, what == store.Deleted)
		}
	case rbacv1.GroupName:
		s.policy = nil
	case admissionv1.GroupName:
		s.admissions = nil
	}
	if s.garbage != nil {
		s.collected(t, change, next)
	}
	s.meter(t, change)
	s.furnishLater(t, change)
	s.fillTokensLater(t, change)
	s.aggregateLater(t)
	s.observeLater(t)
	if what == store.Deleted || t.name() == namespaces() && next.GetDeletionTimestamp() != nil {
		s.sweepLater()
	}
	return again.show(stored)
}

// complete sets what a stored object lacks, and reports whether that is something: a real server sets defaults whenever it reads an
// object. A Job without labels has those of its template, most of which it got after its other defaults.
func (t *table) complete(what store.EventType, o *unstructured.Unstructured) bool {
	switch t.group + "/" + t.plural {
	case "/persistentvolumeclaims": // its phase, which it has already here
		return what == store.Added
	case "batch/jobs":
		labels, found, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		if found && len(o.GetLabels()) == 0 {
			o.SetLabels(labels)
			return true
		}
	}
	return false
}

// uidPrefix is the part that all uids of this kind of server have.
const uidPrefix = "00000000-0000-4000-8000-"

// uid returns a new uid.
func (s *Server) uid() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("%s%012d", uidPrefix, s.uids))
}

func keyOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}
