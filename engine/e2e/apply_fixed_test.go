// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl"
	applying "github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// rules is a kind whose fields cannot be changed, or are not valid, for rules in various words.
const rules = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fixedrules.rules.example.com}
spec:
  group: rules.example.com
  names: {kind: FixedRule, plural: fixedrules}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              x-kubernetes-validations:
                - {rule: "!has(oldSelf.whole) || self.whole == oldSelf.whole", message: the whole is for ever}
                - {rule: "!has(oldSelf.forbidden) || self.forbidden == oldSelf.forbidden", message: not that, reason: FieldValueForbidden, fieldPath: .forbidden}
              properties:
                silent: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
                words: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field can't be changed after creation}]}
                whole: {type: string}
                forbidden: {type: string}
                grows: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: it grows}]}
                keys: {type: object, maxProperties: 5, additionalProperties: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: self == oldSelf}]}}
                checked: {type: string, x-kubernetes-validations: [{rule: "self.startsWith('a')", message: field is immutable}]}
                both: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}, {rule: "self.startsWith('a')"}]}
                one: {type: string, enum: [a, b]}
`

// fixedCase is an object before and after a change of its template.
type fixedCase struct {
	resource string
	// object is YAML in which NAME is the name, and VALUE is before and then after; PORT is 80 and then wrong.
	object, before, after string
	// recreated: the field cannot be changed, and its new value is valid.
	recreated bool
}

// aPersonsField is the case in which the API server refuses a field that a person has set, and personsPatch sets it.
const (
	aPersonsField = "a part of a strategy that a person has set"
	personsPatch  = `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}}}}`
)

// fixedCases are changes that the API server refuses: some because the field cannot be changed, some because of its value.
func fixedCases() map[string]fixedCase {
	const (
		pod     = `{restartPolicy: Never, containers: [{name: c, image: i}]}`
		web     = `{metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}`
		custom  = "fixedrules.v1.rules.example.com"
		foreign = "apiVersion: rules.example.com/v1\nkind: FixedRule\nmetadata: {name: NAME}\nspec: "
	)
	out := map[string]fixedCase{
		"a selector":                                   {"deployments.v1.apps", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {replicas: 0, selector: {matchLabels: {app: VALUE}}, template: {metadata: {labels: {app: VALUE}}, spec: {containers: [{name: c, image: i}]}}}", "a", "b", true},
		"a selector, with a port that is wrong":        {"deployments.v1.apps", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {replicas: 0, selector: {matchLabels: {app: VALUE}}, template: {metadata: {labels: {app: VALUE}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: PORT}]}]}}}", "a", "b", false},
		"replicas below zero":                          {"deployments.v1.apps", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {replicas: VALUE, selector: {matchLabels: {app: a}}, template: " + web + "}", "0", "-1", false},
		"a StatefulSet's Service":                      {"statefulsets.v1.apps", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: NAME}\nspec: {replicas: 0, serviceName: VALUE, selector: {matchLabels: {app: a}}, template: " + web + "}", "a", "b", true},
		"a StatefulSet's claims":                       {"statefulsets.v1.apps", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: NAME}\nspec: {replicas: 0, serviceName: a, selector: {matchLabels: {app: a}}, template: " + web + ", volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: VALUE}}}}]}", "1Gi", "2Gi", true},
		"a Job's template":                             {"jobs.v1.batch", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME}\nspec: {suspend: true, completionMode: NonIndexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: VALUE}]}}}", "a", "b", true},
		"a Job's mode":                                 {"jobs.v1.batch", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME}\nspec: {suspend: true, completions: 1, completionMode: VALUE, template: {spec: " + pod + "}}", "NonIndexed", "Indexed", true},
		"a Job's mode that there is not":               {"jobs.v1.batch", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME}\nspec: {suspend: true, completions: 1, completionMode: VALUE, template: {spec: " + pod + "}}", "NonIndexed", "Other", false},
		"a Pod's container":                            {"pods.v1", "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: VALUE, image: i}]}", "a", "b", true},
		"a Service's address":                          {"services.v1", "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {clusterIP: VALUE, ports: [{port: 80}]}", `""`, "None", true},
		"a Service's port that is wrong":               {"services.v1", "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {ports: [{port: VALUE}]}", "80", "99999", false},
		"a claim's access modes":                       {"persistentvolumeclaims.v1", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: NAME}\nspec: {accessModes: [VALUE], resources: {requests: {storage: 1Gi}}}", "ReadWriteOnce", "ReadWriteMany", true},
		"a claim's access mode that there is not":      {"persistentvolumeclaims.v1", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: NAME}\nspec: {accessModes: [VALUE], resources: {requests: {storage: 1Gi}}}", "ReadWriteOnce", "Sometimes", false},
		"a volume's source":                            {"persistentvolumes.v1", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: NAME}\nspec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: VALUE}}", "/a", "/b", true},
		"a Secret's type":                              {"secrets.v1", "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\ntype: example.com/VALUE", "a", "b", true},
		"an immutable ConfigMap's data":                {"configmaps.v1", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\nimmutable: true\ndata: {a: VALUE}", "a", "b", true},
		"an immutable Secret's data":                   {"secrets.v1", "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\nimmutable: true\nstringData: {a: VALUE}", "a", "b", true},
		aPersonsField:                                  {"deployments.v1.apps", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {replicas: 0, strategy: {type: VALUE}, selector: {matchLabels: {app: a}}, template: " + web + "}", "RollingUpdate", "Recreate", false},
		"a binding's role":                             {"rolebindings.v1.rbac.authorization.k8s.io", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: NAME}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: VALUE}", "a", "b", true},
		"a PriorityClass' value":                       {"priorityclasses.v1.scheduling.k8s.io", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NAME}\nvalue: VALUE", "1", "2", true},
		"a PriorityClass' value that is too large":     {"priorityclasses.v1.scheduling.k8s.io", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NAME}\nvalue: VALUE", "1", "2000000000", false},
		"a StorageClass' provisioner":                  {"storageclasses.v1.storage.k8s.io", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NAME}\nprovisioner: example.com/VALUE", "a", "b", true},
		"a StorageClass' parameters":                   {"storageclasses.v1.storage.k8s.io", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NAME}\nprovisioner: example.com/a\nparameters: {a: VALUE}", "a", "b", true},
		"a StorageClass' binding mode":                 {"storageclasses.v1.storage.k8s.io", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NAME}\nprovisioner: example.com/a\nvolumeBindingMode: VALUE", "Immediate", "WaitForFirstConsumer", true},
		"a RuntimeClass' handler":                      {"runtimeclasses.v1.node.k8s.io", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: NAME}\nhandler: VALUE", "a", "b", true},
		"an IngressClass' controller":                  {"ingressclasses.v1.networking.k8s.io", "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: NAME}\nspec: {controller: example.com/VALUE}", "a", "b", true},
		"a CSIDriver's life":                           {"csidrivers.v1.storage.k8s.io", "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: NAME}\nspec: {attachRequired: VALUE}", "true", "false", true},
		"an EndpointSlice's address type":              {"endpointslices.v1.discovery.k8s.io", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: NAME}\naddressType: VALUE\nendpoints: []", "IPv4", "IPv6", true},
		"a rule without words":                         {custom, foreign + "{silent: VALUE}", "a", "b", true},
		"a rule in its own words":                      {custom, foreign + "{words: VALUE}", "a", "b", true},
		"two rules":                                    {custom, foreign + "{silent: VALUE, words: VALUE}", "a", "b", true},
		"a rule of the whole spec":                     {custom, foreign + "{whole: VALUE}", "a", "b", true},
		"a rule that forbids":                          {custom, foreign + "{forbidden: VALUE}", "a", "b", true},
		"a rule that lets a number grow":               {custom, foreign + "{grows: VALUE}", "2", "1", true},
		"a rule of a map's values":                     {custom, foreign + "{keys: {x.y/z: VALUE}}", "a", "b", true},
		"a rule about the value in words that lie":     {custom, foreign + "{checked: VALUE}", "a", "b", false},
		"a value that may neither be nor come":         {custom, foreign + "{both: VALUE}", "a", "b", false},
		"a field that is fixed, and one that is wrong": {custom, foreign + "{silent: VALUE, one: VALUE}", "a", "c", false},
	}
	return out
}

// TestOnlyWhatCannotBeChangedIsRecreated: for each kind of refusal it is found out whether the change or the value is refused.
func TestOnlyWhatCannotBeChangedIsRecreated(t *testing.T) {
	t.Parallel()
	plane.Apply(t, "", rules)
	for name, tt := range fixedCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := plane.Namespace(t)
			edit := ""
			if name == aPersonsField {
				edit = personsPatch
			}
			err := changeOf(t, ns, tt, edit)
			t.Logf("the API server says: %v", err)
			if err == nil {
				t.Fatal("the change is not refused")
			}
			if _, recreated := errors.AsType[*applying.FixedError](err); recreated != tt.recreated {
				t.Errorf("it is to be recreated: %t", recreated)
			}
		})
	}
}

// changeOf makes an object that a namespace owns, and changes it, after the edit of a person if there is one.
func changeOf(t *testing.T, ns string, tt fixedCase, edit string) error {
	t.Helper()
	owner := plane.Objects("namespaces.v1", "").Get(t, ns)
	objects := plane.Objects(tt.resource, "")
	client := plane.Dynamic().Resource(objects.Name).Namespace("")
	namespaced := !strings.Contains(tt.resource, "classes") && !strings.HasPrefix(tt.resource, "csidrivers") && !strings.HasPrefix(tt.resource, "persistentvolumes")
	if namespaced {
		client = plane.Dynamic().Resource(objects.Name).Namespace(ns)
	}
	a := applying.Applier{
		Owner:   ownership.Owner{Object: owner, Keys: ownership.KeysOf(dsl.New("fixed"))},
		Manager: "fixed", Settled: &applying.Settled{Memory: &applying.SettledMemory{}}, Found: &drift.Drift{}, Lacking: true,
	}
	desired := func(value, port string) *unstructured.Unstructured {
		text := strings.NewReplacer("NAME", ns, "VALUE", value, "PORT", port).Replace(tt.object)
		var tree map[string]any
		if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		o, err := dsl.Object(tree)
		if err != nil {
			t.Fatal(err)
		}
		if namespaced {
			o.SetNamespace(ns)
		}
		if err := a.Owner.Complete(o, namespaced, dsl.ChildSpec{}); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if _, _, err := a.Apply(t.Context(), client, desired(tt.before, "80"), nil); err != nil {
		t.Fatal(err)
	}
	if edit != "" {
		if _, err := client.Patch(t.Context(), ns, types.MergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "person"}); err != nil {
			t.Fatal(err)
		}
	}
	live, err := client.Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !namespaced {
		t.Cleanup(func() { objects.Delete(t, ns) })
	}
	a.Lacking, a.Found = false, &drift.Drift{}
	_, _, err = a.Apply(t.Context(), client, desired(tt.after, "99999"), live)
	return err
}
