// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import "math/rand/v2"

// The limits of the search for a good order.
const (
	// sweeps is how often the layers are sorted from one initial order; shuffles is how many random initial orders
	// are tried.
	sweeps, shuffles = 24, 16
	// effort limits the total number of places that are sorted, so that large graphs take at most a few seconds.
	effort = 300_000
)

// order sorts the places of each layer so that few links cross. It starts from several orders and takes the best
// result; among equal results, the first.
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
	lots := rand.NewPCG(1, 1) // the same sequence each time
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
	least  int // crossings of the best order
	places int
	left   int // remaining effort
}

// goesOn reports whether a better order is possible and some effort is left.
func (s *search) goesOn() bool { return s.least > 0 && s.left > 0 }

// improve looks for better orders, starting from the current one. It sorts places by their neighbours, layer by
// layer, alternately down and up, and exchanges neighbours where that helps.
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
