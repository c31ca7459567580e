// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

// phase is the progress of a key's reconcile.
type phase uint8

const (
	// resting: no reconcile has the key. Changes of the object and of its children queue it.
	resting phase = iota
	// running: a reconcile has the key. Changes of children wait for its end, because they may be echoes.
	running
	// writing: the reconcile writes the object. Changes of the object wait for its end, too.
	writing
	phases
)

// event is a cause for a key to change its phase.
type event uint8

const (
	// onTake: a reconcile takes the key. onWrite: it is about to write its object. onEnd: it has ended.
	onTake event = iota
	onWrite
	onEnd
	// onQueue: the key is queued, whatever the reconcile writes, so no event has to be put off.
	onQueue
	events
)

// transitions has the next phase for each phase and event.
var transitions = [phases][events]phase{
	resting: {onTake: running, onWrite: resting, onEnd: resting, onQueue: resting},
	running: {onTake: running, onWrite: writing, onEnd: resting, onQueue: running},
	writing: {onTake: running, onWrite: writing, onEnd: resting, onQueue: running},
}

// after returns the phase after an event.
func (p phase) after(e event) phase { return transitions[p][e] }
