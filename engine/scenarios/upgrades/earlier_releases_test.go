// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// leavers are the operators that left the objects in testdata/book1; its README says how.
var leavers = map[string]func(foo *dsl.Resource, j *enginetest.Journal){
	"essence": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnCreate("made", j.Note("made"))
		foo.OnUpdate("changed", scene.NotesOld(j))
	},
	"packed": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.On(scene.CreateAndUpdate(), "changed", j.Note("changed", func(_ context.Context, r *dsl.Request) error {
			was, _ := dsl.MustParsePath("spec.text").In(r.Old)
			text, _ := was.(string)
			j.Add(fmt.Sprint("old has ", len(text)))
			return nil
		}))
	},
	"fields": func(foo *dsl.Resource, j *enginetest.Journal) { foo.OnField("spec.size", "sized", scene.NotesOld(j)) },
	"digests": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.On(scene.CreateAndUpdate(), "changed", scene.NotesOld(j), dsl.NoOld())
		foo.OnField("spec.size", "sized", j.Note("sized"), dsl.NoOld())
	},
	"retrying": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnCreate("made", j.Note("made", scene.RetriesAfter(time.Hour)), dsl.Retries(3))
		foo.On(scene.CreateAndUpdate(), "steady", j.Note("steady"))
	},
	"updating": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.On(scene.CreateAndUpdate(), "steady", j.Note("steady"))
		foo.OnField("spec.size", "sized", j.Note("sized", func(ctx context.Context, r *dsl.Request) error {
			if err := scene.NotesOld(j)(ctx, r); err != nil {
				return err
			}
			return scene.FailsOnce(ctx, r)
		}))
	},
	"failed": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnCreate("made", j.Note("made", scene.Fails(dsl.Permanent(scene.ErrAgain))))
		foo.OnUpdate("changed", j.Note("changed"))
	},
	"leaving": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnDelete("one", j.Note("one"))
		foo.OnDelete("two", j.Note("two", scene.FailsOnce))
	},
	"after": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.On(scene.CreateAndUpdate(), "first", j.Note("first", scene.FailsOnce))
		foo.On(scene.CreateAndUpdate(), "second", j.Note("second"), dsl.After("first"))
	},
	"resumed": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnCreate("made", j.Note("made"))
		foo.OnResume("back", j.Note("back"))
		scene.Syncs(foo, j)
		foo.OnDelete("left", j.Note("left"))
	},
	"steps": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnCreate("steps", dsl.Steps(j.Note("first"), j.Note("second", scene.FailsOnce)))
	},
	"generation": func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.ObservedGeneration = true
		foo.On(scene.CreateAndUpdate(), "made", j.Note("made"), dsl.Field("spec"), dsl.NoOld())
	},
}

// inherits plays on a stage to which an earlier release left web, as the stage's operator had left it.
func inherits(t *testing.T, by string, change func(web *unstructured.Unstructured), play func(s *scene.Stage)) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: by == "generation"})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { leavers[by](foo, &s.Journal) })
		text, err := os.ReadFile(filepath.Join("testdata", "book1", by+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if text, err = yaml.YAMLToJSON(text); err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(o)
		}
		s.Load(o)
		play(s)
	})
}

// TestObjectsOfEarlierReleases holds law 2 across releases: what version 1 of the state says was handled
// is handled, what it says is open goes on, and it is not rewritten for that alone.
func TestObjectsOfEarlierReleases(t *testing.T) {
	// quiet: nothing is called, nor written, however long one waits.
	quiet := func(s *scene.Stage) {
		s.Launch()
		s.Advance(2 * time.Hour)
		s.Called()
		s.Wrote()
		s.Process.Restart()
		s.Called()
		s.Wrote()
	}
	// retries: what is open is tried when its time comes and not before, and that is all.
	retries := func(want ...string) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Launch()
			s.Advance(59 * time.Minute)
			s.Called()
			s.Wrote()
			s.Advance(time.Minute)
			s.Called(want...)
			s.Advance(30 * time.Minute)
			s.Called()
		}
	}
	tests := map[string]struct {
		by   string
		play func(s *scene.Stage)
	}{
		"what was handled is, with its essence":                   {"essence", quiet},
		"what was handled is, with its essence packed":            {"packed", quiet},
		"what was handled is, with the fields that handlers name": {"fields", quiet},
		"what was handled is, with digests alone":                 {"digests", quiet},
		"what was handled is, with its generation alone":          {"generation", quiet},
		"what failed for good is not tried again":                 {"failed", quiet},
		"a change is one against the essence": {"essence", func(s *scene.Stage) {
			s.Launch()
			s.Resize(2)
			s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
			s.Resize(3)
			s.Called("update map[spec:map[color:red size:2]] [change spec.size 2 3]")
		}},
		"a change is one against the essence that was packed": {"packed", func(s *scene.Stage) {
			s.Launch()
			s.Resize(2)
			s.Called("changed update", "old has 2000")
		}},
		"a change is one against the fields that handlers name": {"fields", func(s *scene.Stage) {
			s.Launch()
			s.Set("blue", "spec", "color")
			s.Called()
			s.Resize(2)
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
		}},
		"a change is one against the digest, each handler's own": {"digests", func(s *scene.Stage) {
			s.Launch()
			s.Set("blue", "spec", "color")
			s.Called("update map[] []")
			s.Resize(2)
			s.Called("update map[] []", "sized update")
		}},
		"a change is one against the generation": {"generation", func(s *scene.Stage) {
			s.Launch()
			s.Resize(2)
			s.Called("made update")
		}},
		"what changed during the upgrade is a change": {"essence", func(s *scene.Stage) {
			s.Resize(2)
			s.Launch()
			s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
			s.Process.Restart()
			s.Called()
		}},
		"a retry goes on with its attempts, and what had succeeded is not repeated": {"retrying", func(s *scene.Stage) {
			retries("made create 2")(s)
			s.Advance(30 * time.Minute)
			s.Called("made create 3")
			s.Advance(2 * time.Hour)
			s.Called("made create 4")
		}},
		"a retry of an update still has what was": {"updating",
			retries("sized update 2", "update map[spec:map[size:1]] [change spec.size 1 2]")},
		"a retry holds up what comes after it": {"after", retries("first create 2", "second create")},
		"steps that are done are not repeated": {"steps", retries("second create 2")},
		"a change during the upgrade begins a retry anew": {"retrying", func(s *scene.Stage) {
			s.Resize(2)
			s.Launch()
			s.Called("made create", "steady update") // the second had handled the creation
		}},
		"what failed for good is tried when the object changes": {"failed", func(s *scene.Stage) {
			s.Launch()
			s.Resize(2)
			s.Called("made create", "changed update")
		}},
		"a deletion goes on with the handler that is left": {"leaving", func(s *scene.Stage) {
			retries("two delete 2")(s)
			s.WantGone()
		}},
		"a new process resumes, and creates nothing": {"resumed", func(s *scene.Stage) {
			s.Launch()
			s.Called("back resume", "sync resume")
			s.Wrote()
			s.Resize(2)
			s.Called("sync update")
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"the next write carries the version of this release": {"essence", func(s *scene.Stage) {
			s.Launch()
			s.Resize(2)
			s.Settle()
			if text := s.Web().GetAnnotations()[scene.StateAnnotation]; !strings.HasPrefix(text, `{"handwerk":2`) {
				s.T.Errorf("the state is %s", text)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { inherits(t, test.by, nil, test.play) })
	}
}

// TestCopiesOfEarlierReleases holds that version 1 of the state, which does not say whose it is, counts
// only where this operator wrote it: who copies annotations is another manager.
func TestCopiesOfEarlierReleases(t *testing.T) {
	copied := func(o *unstructured.Unstructured) {
		o.SetUID("0f4e6e2c-8f8e-4d05-9a3e-2c1a6f1f0e02")
		managed := o.GetManagedFields()
		for i := range managed {
			if managed[i].Manager == "op" {
				managed[i].Manager = "kube-controller-manager"
			}
		}
		o.SetManagedFields(managed)
	}
	// finalized: the operator has written to the copy, though not its state.
	finalized := func(o *unstructured.Unstructured) {
		copied(o)
		o.SetFinalizers([]string{scene.Finalizer})
		o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: "op", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "example.com/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{".":{},"v:\"op.handwerk.dev/finalizer\"":{}}}}`),
		}))
	}
	tests := map[string]struct {
		by     string
		change func(*unstructured.Unstructured)
		want   []string
	}{
		"a copy is new, though its state says that it was handled":              {"essence", copied, []string{"made create"}},
		"a copy is new, though the operator's finalizer is on it":               {"resumed", finalized, []string{"made create", "sync create"}},
		"a copy is new, though its state says that a retry is due in an hour":   {"after", copied, []string{"first create"}},
		"a copy is new, though its state says that its handler failed for good": {"failed", copied, []string{"made create"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inherits(t, test.by, test.change, func(s *scene.Stage) {
				s.Launch()
				s.Called(test.want...)
			})
		})
	}
}

// TestAFieldThatComesLateToAnObjectOfAnEarlierRelease holds that what an earlier release has begun to create is still
// being made.
func TestAFieldThatComesLateToAnObjectOfAnEarlierRelease(t *testing.T) {
	tests := map[string]struct {
		made dsl.Func
		want []string
	}{
		"when all is made, that is no creation":                   {scene.Succeeds, []string{"made create 2"}},
		"written by the handler that is still to make it, is one": {scene.SetsYes("spec.extra"), []string{"made create 2", "extra create"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inherits(t, "retrying", nil, func(s *scene.Stage) {
				s.Operator = dsl.New("op")
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.OnCreate("made", s.Note("made", test.made))
					foo.OnCreate("extra", s.Note("extra"), dsl.Field("spec.extra"))
				})
				s.Launch()
				s.Advance(2 * time.Hour)
				s.Called(test.want...)
				s.Set("yes", "spec", "extra")
				s.Called()
			})
		})
	}
}

// TestANumberWithAMarkerWithoutAUIDIsBelieved holds that the number is the operator's that a version wrote whose field manager did
// not name the object, unless the object was made later.
func TestANumberWithAMarkerWithoutAUIDIsBelieved(t *testing.T) {
	tests := map[string]struct {
		off   bool
		later time.Duration
		want  []string
	}{
		"where the operator keeps the number":                                   {},
		"where it keeps elsewhere what was handled":                             {off: true},
		"and not where it keeps the number and the object is a copy":            {later: time.Second, want: []string{"made create"}},
		"and not where it keeps it elsewhere, either, and the object is a copy": {off: true, later: time.Second, want: []string{"made create"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inherits(t, "generation", func(web *unstructured.Unstructured) {
				web.SetCreationTimestamp(metav1.NewTime(web.GetCreationTimestamp().Add(test.later)))
				entries := web.GetManagedFields()
				for i := range entries {
					if entries[i].Subresource == "status" {
						entries[i].Manager = "op/observed"
					}
				}
				web.SetManagedFields(entries)
			}, func(s *scene.Stage) {
				if test.off {
					s.Operator = dsl.New("op")
					s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnCreate("made", s.Note("made")) })
				}
				s.Launch()
				s.Called(test.want...)
				if len(test.want) == 0 {
					s.Wrote()
				}
				s.Process.Restart()
				s.Called()
			})
		})
	}
}

// TestANumberOfAnEarlierReleaseIsNoCopy holds that the number which an earlier release left on an object does not count for one
// that was made later, and restored with managedFields.
func TestANumberOfAnEarlierReleaseIsNoCopy(t *testing.T) {
	later := func(web *unstructured.Unstructured) {
		web.SetCreationTimestamp(metav1.NewTime(web.GetCreationTimestamp().Add(time.Second)))
	}
	inherits(t, "generation", later, func(s *scene.Stage) {
		s.Launch()
		s.Called("made create")
		s.Process.Restart()
		s.Called()
	})
}
