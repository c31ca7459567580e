// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import "math/rand/v2"

// How much is done to find a good order.
const (
	// sweeps is how often the layers are gone over from one first order, shuffles how many first orders are drawn by lot.
	sweeps, shuffles = 24, 16
	// effort is how many places are gone over together, so that large graphs take no longer than a few seconds.
	effort = 300_000
)

// order puts the places of each layer into an order in which few links cross. It begins with several ones; the best that
// comes out counts, and of equals the first.
func (d *drawing) order() {
	d.firstOrder(true, true)
	s := search{drawing: d, least: -1, left: effort}
	for _, layer := range d.layers {
		s.places += len(layer)
	}
	s.improve()
	for _, start := range []struct{ fromTop, forward bool }{{true, false}, {false, true}, {false, false}} {
		if s.goesOn() {
			d.firstOrder(start.fromTop, start.forward)
			s.improve()
		}
	}
	lots := rand.NewPCG(1, 1) // the same ones each time
	for n := 0; n < shuffles && s.goesOn(); n++ {
		d.shuffle(lots)
		s.improve()
	}
	d.layers = s.best
	for _, layer := range d.layers {
		number(layer)
	}
}

// search looks for a good order.
type search struct {
	*drawing
	best   [][]*place
	least  int // how often links cross in the best one
	places int
	left   int // of the effort
}

// goesOn reports whether there may be a better order, and some effort is left.
func (s *search) goesOn() bool { return s.least > 0 && s.left > 0 }

// improve looks for better orders, beginning with the one that there is. Places go between those that they are linked
// with, layer by layer, down and up in turns, and neighbours are exchanged where that helps.
func (s *search) improve() {
	s.note()
	for sweep := range sweeps {
		if s.least == 0 || s.left <= 0 && sweep > 1 {
			return
		}
		down := sweep%2 == 0
		for i := range s.layers {
			layer := s.layers[i]
			if !down {
				layer = s.layers[len(s.layers)-1-i]
			}
			byNeighbours(layer, down, sweep%4 > 1)
		}
		s.exchange()
		s.note()
		s.left -= s.places
	}
}

// note keeps the order if it is the best so far.
func (s *search) note() {
	if now := s.crossings(); s.least < 0 || now < s.least {
		s.best, s.least = s.snapshot(), now
	}
}

// shuffle mixes the places of each layer.
func (d *drawing) shuffle(lots *rand.PCG) {
	for _, layer := range d.layers {
		for i := len(layer) - 1; i > 0; i-- {
			j := int(lots.Uint64() % uint64(i+1))
			layer[i], layer[j] = layer[j], layer[i]
		}
		number(layer)
	}
}
