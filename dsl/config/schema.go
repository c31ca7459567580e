// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// The form of a configuration. The tags say all there is to know of a field: its name, whether it
// is required (unless another one is there), its least value (min), whether a list has
// nothing twice (unique), its default, and what it means (doc). The decoder, the JSON
// Schema and whoever explains the form read them here.

type document struct {
	APIVersion apiVersion `yaml:"apiVersion" required:"true" doc:"The version of this form."`
	Kind       kind       `yaml:"kind" required:"true" doc:"Always Operator."`
	Metadata   metadata   `yaml:"metadata" required:"true" doc:"Who the operator is. Several documents of one name make one operator."`
	Scope      *scope     `yaml:"scope" doc:"Where the operator works. Only in one of its documents."`
	Settings   *settings  `yaml:"settings" doc:"The operator's own settings; all have defaults. Only in one of its documents."`
	Resources  []resource `yaml:"resources" doc:"The resources to watch, each in one document only."`
}

type metadata struct {
	Name   string `yaml:"name" required:"true" doc:"The operator's name, a DNS label. The field manager, finalizer, annotation prefix and Event source derive from it."`
	Domain string `yaml:"domain" default:"handwerk.dev" doc:"What ends the prefix of the operator's annotations and of its finalizer, as in example.com. Only in one of its documents."`
}

type scope struct {
	Namespaces []string `yaml:"namespaces" unique:"true" required:"true" doc:"Names and globs (team-*), live while the operator runs. One that begins with ! takes out what it matches. Resources that have no namespace are not affected."`
}

type settings struct {
	LeaderElection *leaderElection `yaml:"leaderElection" doc:"How several processes of this operator agree on who works. Absent: every process works."`
	GracePeriod    time.Duration   `yaml:"gracePeriod" default:"20s" doc:"How long handlers may go on after a stop was asked for."`
	QPS            float32         `yaml:"qps" min:"0.1" doc:"The most requests a second to the API server. Absent: no limit on this side."`
	Burst          int             `yaml:"burst" min:"1" doc:"How many requests may exceed qps for a moment. Twice qps by default. Needs qps."`
	Events         dsl.EventsMode  `yaml:"events" default:"warnings" doc:"Which Events the operator sends of its own accord. warnings: of handlers that fail, and of what is held. changes: of children that it created and deleted, too. What handlers report is always sent."`
}

type leaderElection struct {
	Mode          dsl.LeaderMode `yaml:"mode" required:"true" doc:"none: every process works. lease: the holder of a Lease works, the others wait with warm caches. life: the first pod to own the lock works until it is gone."`
	Name          string         `yaml:"name" doc:"The lock's name. By default the operator's name with -leader behind it."`
	Namespace     string         `yaml:"namespace" doc:"The lock's namespace. By default the pod's; required outside a cluster."`
	LeaseDuration time.Duration  `yaml:"leaseDuration" default:"15s" doc:"How long a standby waits after the last renewal it saw. Only for mode lease."`
	RenewDeadline time.Duration  `yaml:"renewDeadline" default:"10s" doc:"How long the leader tries to renew before it gives up; less than leaseDuration. Only for mode lease."`
	RetryPeriod   time.Duration  `yaml:"retryPeriod" default:"2s" doc:"The time between tries; 1.2 times of it are less than renewDeadline. Only for mode lease."`
}

type resource struct {
	Resource           string             `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling, as in deployments.v1.apps. Without a version: the one that the server prefers."`
	Schema             *customResource    `yaml:"schema" doc:"What an object is, so that the operator can bring its CRD along (operator crd, operator run --install-crds) and expressions are checked without a cluster. Absent: the CRD comes from elsewhere."`
	Resync             time.Duration      `yaml:"resync" doc:"The period after which each object is looked at again. Absent: never."`
	Workers            int                `yaml:"workers" min:"1" default:"4" doc:"How many objects are handled at once."`
	Cache              dsl.CacheProfile   `yaml:"cache" default:"compact" doc:"How objects are held. compact: about the size of their JSON. metadata: metadata alone, handlers see no spec and no status. live: keys alone, each pass reads from the server."`
	Keep               []dsl.Path         `yaml:"keep" unique:"true" doc:"For cache compact: hold only these fields (paths such as spec.replicas), and metadata."`
	Selector           *selector          `yaml:"selector" doc:"Which objects exist for this operator; the server selects. Absent: all."`
	ObservedGeneration bool               `yaml:"observedGeneration" doc:"Whether status.observedGeneration belongs to this operator, and may tell that an object was handled."`
	Owns               []dsl.ResourceName `yaml:"owns" unique:"true" doc:"Resources whose objects are children: a change of one runs handlers with cause child for its owner."`
	Related            []relation         `yaml:"related" doc:"Objects that handlers look at without owning them; a change of one runs handlers with cause related."`
	Handlers           []handler          `yaml:"handlers" required:"true" unless:"schedule" doc:"What to do for each object, in this order."`
	Schedule           schedule           `yaml:"schedule" doc:"What to do by time (every or cron) for the resource as a whole: the variable objects has all objects. Without leaderElection each process does it."`
}

type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels" doc:"Labels that an object must have, with these values."`
	MatchExpressions []requirement     `yaml:"matchExpressions" doc:"Conditions on labels."`
	Fields           form.Texts        `yaml:"fields" doc:"Field selectors that the server knows for the resource, such as status.phase=Running; one or a list."`
}

type requirement struct {
	Key      string   `yaml:"key" required:"true" doc:"The label."`
	Operator operator `yaml:"operator" required:"true" doc:"How the label is compared."`
	Values   []string `yaml:"values" doc:"What it is compared to, for In and NotIn."`
}

type handler struct {
	ID          string         `yaml:"id" required:"true" doc:"Unique within the resource. Progress is kept under it, so a renamed handler is a new one."`
	Causes      []dsl.Cause    `yaml:"causes" unique:"true" doc:"Why the handler runs. Without it a handler with a timer runs by that alone, any other one for reconcile."`
	When        string         `yaml:"when" doc:"A CEL expression that must be true, or the handler does not see the object. Variables: self, old, diff, cause, event, params."`
	Field       dsl.Path       `yaml:"field" doc:"All that the handler looks at, as in spec.replicas."`
	Labels      matches        `yaml:"labels" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations matches        `yaml:"annotations" doc:"Annotations that the object must have, in the form of labels."`
	Retries     *int           `yaml:"retries" min:"0" doc:"How often the handler is run again after failing. Absent: until it succeeds."`
	Backoff     *backoff       `yaml:"backoff" doc:"The wait between attempts; it doubles from initial to max."`
	Timeout     time.Duration  `yaml:"timeout" doc:"The time that one attempt may take. Absent: no limit."`
	After       []string       `yaml:"after" unique:"true" doc:"Handlers declared before this one that must have succeeded."`
	Finalizer   *bool          `yaml:"finalizer" default:"true" doc:"For cause delete: whether the object's deletion waits for the handler."`
	OnFailure   onFailure      `yaml:"onFailure" default:"hold" doc:"For cause delete: whether an object is held or released when the handler has failed for good."`
	Old         *bool          `yaml:"old" default:"true" doc:"Whether the handler uses the old object and the difference. Without, less is kept on the object."`
	With        map[string]any `yaml:"with" doc:"The parameters of the function that the handler calls."`
	Steps       []step         `yaml:"steps" doc:"Several actions, in order, instead of one. Each is remembered: after a failure those before it are not repeated."`
	Needs       []need         `yaml:"needs" doc:"What the handler does that nobody can see in it: rights of Go functions that do not declare theirs, and for children whose kind is worked out. For operator rbac."`
	timing

	action string // the key of the action, "" when there is none
	config any    // what stands under it, nil when that is at fault
	whole  bool   // it stands under schedule
	level  bool   // it is level-triggered
	untold bool   // what one of its steps needs is not known
	partly bool   // it is a step that is not always taken
}

type timing struct {
	Every    time.Duration `yaml:"every" doc:"Run time and again, with this period; as a cause beside others, or alone."`
	Cron     string        `yaml:"cron" doc:"Run by a schedule of five fields, such as 0 3 * * *, or @hourly, @daily, @weekly, @monthly, @yearly."`
	TimeZone string        `yaml:"timeZone" default:"UTC" doc:"The time zone that cron is read in, as in Europe/Berlin."`
	Idle     time.Duration `yaml:"idle" doc:"Run only when the object has not changed for this time: once after each change, or with every or cron at each of their times."`
	Jitter   time.Duration `yaml:"jitter" doc:"The most by which a run is moved at random: earlier for every, later for cron. By default a tenth of the period, for cron at most a minute."`
}

// given reports whether there is a timer.
func (t *timing) given() bool { return t.Every != 0 || t.Cron != "" || t.Idle != 0 }

type need struct {
	Resource  string   `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling, with a subresource behind a slash: deployments.apps/scale. self is the handler's own, as in self/status."`
	Verbs     []string `yaml:"verbs" unique:"true" required:"true" doc:"Verbs of RBAC, as in get, create, patch."`
	Names     []string `yaml:"names" doc:"The only objects that it is about. Absent: any."`
	Namespace string   `yaml:"namespace" doc:"Where the objects are. Absent: in the namespaces that the operator works in."`
}

type relation struct {
	Name      string           `yaml:"name" required:"true" doc:"What expressions call it: related.<name>. Letters, digits and _."`
	Resource  dsl.ResourceName `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling. It is watched."`
	Namespace string           `yaml:"namespace" doc:"The namespace to look into; may have ${…}. By default the object's own; * means all."`
	Object    string           `yaml:"object" doc:"The name of the one object that is wanted; may have ${…}. Then related.<name> is that object, otherwise it is a list."`
	Selector  *selector        `yaml:"selector" doc:"Which objects are wanted; the server selects, unless a value has ${…}."`
	Where     string           `yaml:"where" doc:"A CEL expression that must be true for an object, as in object.spec.class == self.spec.class."`
}

type backoff struct {
	Initial time.Duration `yaml:"initial" default:"1s" doc:"The first wait."`
	Max     time.Duration `yaml:"max" default:"5m" doc:"The longest wait."`
}

type (
	apiVersion string
	kind       string
	operator   string
	onFailure  string
)

// The only values of apiVersion and kind.
const (
	APIVersion = "handwerk.dev/v1alpha1"
	Kind       = "Operator"
)

const (
	hold    onFailure = "hold"
	release onFailure = "release"
)

func (apiVersion) Choices() (string, []string) { return "apiVersion", []string{APIVersion} }
func (kind) Choices() (string, []string)       { return "kind", []string{Kind} }
func (onFailure) Choices() (string, []string) {
	return "policy", []string{string(hold), string(release)}
}
func (operator) Choices() (string, []string) {
	return "operator", []string{"In", "NotIn", "Exists", "DoesNotExist"}
}
