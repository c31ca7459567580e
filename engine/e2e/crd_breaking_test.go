// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// breaker is an account that may install CRDs and list the objects of a group's WebApps.
func breaker(t *testing.T, group string) *cluster.User {
	t.Helper()
	user := plane.User("breaker")
	user.Allow(t, crdRules("get", "create", "patch"), cluster.Rule(group, "webapps", "list"))
	return user
}

// mustBreak holds that an installation of CRDs and the check against a cluster say these texts. Without texts nothing may break.
func mustBreak(t *testing.T, user *cluster.User, op *dsl.Operator, want ...string) {
	t.Helper()
	err := crd.Install(t.Context(), op, user.Config(), crd.Settings{})
	trial, failed := crd.Try(t.Context(), op, user.Config(), op.Resources()[0])
	if failed != nil || len(trial.Rejected)+len(trial.Untried) > 0 {
		t.Errorf("the check says %+v, %v", trial, failed)
	}
	if (err != nil) != (len(want) > 0) || (trial.Breaks != nil) != (len(want) > 0) {
		t.Errorf("the error is %v, and the check says %v, want %q", err, trial.Breaks, want)
		return
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) || !strings.Contains(trial.Breaks.Error(), text) {
			t.Errorf("the error is %v, and the check says %v, want %q", err, trial.Breaks, text)
		}
	}
}

// TestASchemaThatBreaksStoredObjectsIsRefused holds that such a change says its place and an object that does not fit, that the check
// against a cluster says so, too, and that it is installed when it is asked for, or when there is no object.
func TestASchemaThatBreaksStoredObjectsIsRefused(t *testing.T) {
	t.Parallel()
	group := ownGroup("breaking")
	user := breaker(t, group)
	is := func(spec string) *dsl.Operator { return described(t, group, "v1alpha1", spec) }
	const all = `image: string, replicas: integer, tags: '[]string', mode: 'string | enum="fast,slow"', tier: string | required=true default=gold, env: object`
	install(t, user, is(all))
	objects := plane.Objects("webapps.v1alpha1."+group, plane.Namespace(t))
	mustBreak(t, user, is(`image: string, replicas: integer, tags: '[]string'`)) // there is no object
	mustBreak(t, user, is(all))
	objects.Create(t, webapp(group, "first", map[string]any{"image": "nginx", "replicas": int64(2), "mode": "slow", "tags": []any{"a", "a"}, "env": map[string]any{"A": int64(5)}}))
	objects.Create(t, webapp(group, "second", map[string]any{"image": "nginx"}))
	for name, tt := range map[string]struct {
		old, new string
		want     []string
	}{
		"another type":   {`replicas: integer`, `replicas: string`, []string{"v1alpha1 spec.replicas: its type changes from integer to string", "1 of 2 stored objects does not fit", "/first: spec.replicas would be invalid"}},
		"a field less":   {`, mode: 'string | enum="fast,slow"'`, ``, []string{"v1alpha1 spec.mode: the field is dropped", "/first: spec.mode would be lost"}},
		"a value less":   {`fast,slow`, `fast`, []string{`spec.mode: the value "slow" is not allowed any more`, "1 of 2"}},
		"a needed field": {`image: string`, `image: string, host: string | required=true`, []string{"spec.host: the field is required now, and has no default", "2 of 2 stored objects do not fit"}},
		"a bound":        {`image: string`, `image: string | maxLength=9`, []string{"maxLength is 9 now", "the schema is stricter than the cluster's: ", "(all 2 stored objects fit)"}},
		"a set":          {`'[]string'`, `'[]string | listType=set'`, []string{"spec.tags: its elements must be unique now", "1 of 2 stored objects does not fit", "/first: spec.tags[1] would be invalid"}},
		"any form":       {`env: object`, `env: 'map[string]string'`, []string{"spec.env.*: its type changes from any to string", "1 of 2 stored objects does not fit", "/first: spec.env.A would be invalid"}},
		"a default":      {` default=gold`, ``, []string{"spec.tier: the field is required, and its default goes away; the API server reads objects with it, so they cannot be tried without it"}},
		"a rule": {
			`image: string`, `image: 'string | validation="self.startsWith(\"x\")" message="want an x"'`,
			[]string{`spec.image: the rule "self.startsWith(\"x\")" is new`, "2 of 2 stored objects do not fit", "/first: spec.image would be invalid: want an x"},
		},
		"a rule that fails":  {`image: string`, `image: 'string | validation="self == string(10 / (self.size() - 5))"'`, []string{"is new", "/first: spec.image would be invalid: division by zero"}},
		"a rule that holds":  {`image: string`, `image: 'string | validation="self.size() > 1"'`, []string{`spec.image: the rule "self.size() > 1" is new`, "all 2 stored objects fit"}},
		"a rule for updates": {`image: string`, `image: string | immutable=true`, []string{`spec.image: the rule "self == oldSelf" is new; it holds for updates alone, so objects cannot be tried by it (all 2 stored objects fit)`}},
	} {
		t.Run(name, func(t *testing.T) { mustBreak(t, user, is(strings.Replace(all, tt.old, tt.new, 1)), tt.want...) })
	}
	mustWrite(t, "what is asked for", install(t, user, is(`image: string`)), 1)
}

// TestEachVersionThatChangesIsTried holds that objects are read in the version whose schema changes.
func TestEachVersionThatChangesIsTried(t *testing.T) {
	t.Parallel()
	group := ownGroup("versions")
	user := breaker(t, group)
	is := func(spec, beta string) *dsl.Operator {
		op := described(t, group, "v1alpha1", spec)
		tree := op.Resources()[0].CRD
		versions, _, _ := unstructured.NestedSlice(tree, "spec", "versions")
		more, _, _ := unstructured.NestedSlice(described(t, group, "v1alpha1", beta).Resources()[0].CRD, "spec", "versions")
		second := more[0].(map[string]any)
		second["name"], second["storage"] = "v1beta1", false
		op.Resources()[0].CRD = runtime.DeepCopyJSON(tree)
		if err := unstructured.SetNestedSlice(op.Resources()[0].CRD, append(versions, second), "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		return op
	}
	install(t, user, is(`image: string, mode: string`, `image: string, mode: string`))
	objects := plane.Objects("webapps.v1alpha1."+group, plane.Namespace(t))
	objects.Create(t, webapp(group, "first", map[string]any{"image": "nginx", "mode": "slow"}))
	mustBreak(t, user, is(`image: string, mode: string`, `image: string, mode: integer`),
		"v1beta1 spec.mode: its type changes from string to integer", "(1 of 1 stored objects does not fit, ", "/first: spec.mode would be invalid)")
	mustBreak(t, user, is(`image: string | maxLength=9, mode: string`, `image: string`),
		"v1alpha1 spec.image: maxLength is 9 now; v1beta1 spec.mode: the field is dropped",
		"(v1alpha1: the only stored object fits; v1beta1: 1 of 1 stored objects does not fit, ", "/first: spec.mode would be lost)")
	op, proxy := is(`image: string, mode: string`, `image: string`), cluster.NewProxy(t, user.Config())
	if _, err := crd.Try(t.Context(), op, proxy.Config(), op.Resources()[0]); err != nil {
		t.Error(err)
	}
	for version, want := range map[string]int{"v1alpha1": 0, "v1beta1": 1} {
		lists := proxy.Requests(func(r cluster.Request) bool { return strings.HasPrefix(r.URI, "/apis/"+group+"/"+version+"/webapps") })
		if len(lists) != want {
			t.Errorf("objects were listed as %s by %v, want %d requests", version, lists, want)
		}
	}
}

// TestObjectsThatCannotBeListedAreSaid holds that a breaking schema is refused where the account may not list, and that the error
// keeps the reason.
func TestObjectsThatCannotBeListedAreSaid(t *testing.T) {
	t.Parallel()
	group := ownGroup("unlisted")
	user := plane.User("unlisted")
	user.Allow(t, crdRules("get", "create", "patch"))
	install(t, user, described(t, group, "v1alpha1", `image: string`))
	op := described(t, group, "v1alpha1", `image: integer`)
	mustBreak(t, user, op, "its type changes from string to integer (its objects were not tried: webapps."+group+" is forbidden: ")
	if err := crd.Install(t.Context(), op, user.Config(), crd.Settings{}); !apierrors.IsForbidden(err) {
		t.Errorf("the error %v does not have that of the list in it", err)
	}
}

// withHost has a field that the cluster's CRD may lack. IMAGE is the type of the other one, and WHEN when the handler runs.
const withHost = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: webapp}
resources:
  - resource: webapps.v1alpha1.GROUP
    schema:
      kind: WebApp
      spec: {image: IMAGE, host: string}
      status: {readyReplicas: integer}
    handlers:
      - id: note
        when: WHEN
        set: {annotations: {seen: "yes"}}
`

// TestTheCheckAgainstAClusterKnowsTheCRDsThatTheConfigurationBrings holds that the configuration's own schema counts, that the
// message says how the cluster gets it, that a breaking schema can be accepted, and that a missing right is said.
func TestTheCheckAgainstAClusterKnowsTheCRDsThatTheConfigurationBrings(t *testing.T) {
	t.Parallel()
	group := ownGroup("brought")
	user, blind := breaker(t, group), plane.User("blind")
	blind.Allow(t, crdRules("create", "patch"))
	install(t, user, described(t, group, "v1alpha1", `image: string`))
	plane.Objects("webapps.v1alpha1."+group, plane.Namespace(t)).Create(t, webapp(group, "first", map[string]any{"image": "nginx"}))
	const host, until = `self.spec.?host.orValue("") != ""`, " (the cluster's CRD is older than the configuration's: use operator run --install-crds, or operator crd | kubectl apply -f -)"
	for name, tt := range map[string]struct {
		user        *cluster.User
		image, when string
		args        []string
		code        int
		want        string
		not         string
	}{
		"a field that the configuration brings is a warning": {user, "string", host, nil, 0, `warning: operator.yaml:13:26: resources[0].handlers[0].when: unknown field "host" in self.spec (want image)` + until, ""},
		"a field that nobody has is a fault":                 {user, "string", `self.spec.?hots.orValue("") != ""`, nil, 1, `resources[0].handlers[0].when: unknown field "hots" in self.spec (did you mean "host"?)`, until},
		"a schema that breaks is a fault": {user, "integer", "true", nil, 1,
			`resources[0].schema: the schema breaks what the cluster has: v1alpha1 spec.image: its type changes from string to integer (1 of 1 stored objects does not fit, `, "warning"},
		"with a way out":                           {user, "integer", "true", nil, 1, "/first: spec.image would be invalid): change the objects first, keep in the schema what they have, or use --allow-breaking-schema", ""},
		"a schema that breaks can be accepted":     {user, "integer", "true", []string{"--allow-breaking-schema", "--strict"}, 0, "warning: operator.yaml:8:7: resources[0].schema: the schema breaks what the cluster has: ", "use --allow"},
		"a CRD that cannot be compared is said so": {blind, "integer", "true", nil, 0, "warning: the CRD of webapps.v1alpha1." + group + " was not compared with that of the cluster: customresourcedefinitions.apiextensions.k8s.io \"webapps." + group + "\" is forbidden: ", "was not asked"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, strings.NewReplacer("GROUP", group, "IMAGE", tt.image, "WHEN", tt.when).Replace(withHost))
			p := plane.Operator(t, cluster.Launch{Args: append([]string{"validate", "--cluster", "--config", file}, tt.args...), Config: tt.user.Config()})
			code, said := p.Wait(t).Code, strings.ReplaceAll(strings.Join(p.All(), "\n"), filepath.Dir(file)+"/", "")
			if code != tt.code || !strings.Contains(said, tt.want) || tt.not != "" && strings.Contains(said, tt.not) {
				t.Errorf("exit code %d, want %d and %q without %q:\n%s", code, tt.code, tt.want, tt.not, said)
			}
		})
	}
}
