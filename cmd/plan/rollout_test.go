// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// boxes is an operator that keeps a Pod and a claim for each Box.
const boxes = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: boxes}
resources:
  - resource: boxes.v1.example.com
    schema: {kind: Box, spec: {}, status: {phase: string}}
    handlers:
      - id: box
        apply:
          pod:
            apiVersion: v1
            kind: Pod
            metadata: {name: "${self.metadata.name}-pod"}
            spec: {containers: [{name: main, image: busybox}]}
          claim:
            apiVersion: v1
            kind: PersistentVolumeClaim
            metadata: {name: "${self.metadata.name}-claim"}
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
      - id: status
        set: {status: {phase: "${children.pod.status.phase} ${children.claim.status.phase}"}}
`

// TestPodsAndClaimsThatAreReplaced holds that new Pods and claims become ready, and that old ones go.
func TestPodsAndClaimsThatAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, _ := read(t, boxes)
		objects := populated(t, before, objectsOf(t, "{apiVersion: example.com/v1, kind: Box, metadata: {name: a, namespace: shop}}"))
		after, functions := read(t, strings.NewReplacer("-pod", "-second-pod", "-claim", "-second-claim").Replace(boxes))
		report, err := Make(Job{For: 10 * time.Minute, Workloads: WorkloadsRollout}, &Input{Operator: after, Functions: functions, Objects: Objects{List: objects}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range report.Changes {
			got[c.Name] = strings.TrimSpace(string(c.Action) + " " + c.Effect)
			for _, f := range c.Fields {
				if c.Kind == "Box" {
					got[c.Name] += " " + f.String()
				}
			}
		}
		want := map[string]string{"a-pod": "deleted", "a-claim": "deleted", "a-second-pod": "created", "a-second-claim": "created"}
		if diff := gocmp.Diff(want, got); diff != "" || !report.Rested || len(report.Unready) > 0 {
			t.Errorf("rested: %t, not ready: %v, (-want +got):\n%s", report.Rested, report.Unready, diff)
		}
	})
}
