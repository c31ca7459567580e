// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// curve is a picture of how something grows with the number of objects: a line for each subject and row.
type curve struct {
	file, title, unit string
	// by is what a value is divided by to be in the unit.
	by   float64
	rows []part
}

// part is a row and what its line is called, after the subject.
type part struct{ key, name string }

var curves = []curve{
	{"performance-listing.svg", "First listing", "seconds", 1, []part{{listing + "/wall", "until all were looked at"}, {listing + "/cpu", "processor time"}}},
	{"performance-memory.svg", "Memory at rest, and at most", "MB", 1e6, []part{{standing + "/rss", "at rest"}, {standing + "/peak", "at most"}}},
	{"performance-change.svg", "One change at a time", "processor time a change, ms", 1e-3, []part{{react + "/cpu", ""}}},
	{"performance-resync.svg", "One resync of all", "processor time, seconds", 1, []part{{resync + "/cpu", ""}}},
}

// draw draws the curves into a folder.
func (r *result) draw(folder string) error {
	for _, c := range curves {
		if err := r.drawOne(folder, c); err != nil {
			return fmt.Errorf("drawing %s: %w", c.file, err)
		}
	}
	return nil
}

func (r *result) drawOne(folder string, c curve) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, fmt.Sprintf("objects of %.1f KB", float64(r.size)/1e3), c.unit
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	p.Add(plotter.NewGrid())
	for si, sub := range r.subjects {
		for pi, part := range c.rows {
			var points plotter.XYs
			for _, n := range r.sizes {
				if values := r.at(n).values(sub, part.key); len(values) > 0 {
					points = append(points, plotter.XY{X: float64(n), Y: median(values) / c.by})
				}
			}
			if len(points) == 0 {
				continue
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.Color, dots.Color = plotutil.Color(si), plotutil.Color(si)
			line.Dashes, dots.Shape = plotutil.Dashes(pi), plotutil.Shape(pi)
			p.Add(line, dots)
			name := sub.title
			if part.name != "" {
				name += ", " + part.name
			}
			p.Legend.Add(name, line, dots)
		}
	}
	p.Y.Max *= 1.4 // room for the legend
	p.X.Max *= 1.1
	p.Y.Min = 0
	to, err := p.WriterTo(16*vg.Centimeter, 10*vg.Centimeter, strings.TrimPrefix(filepath.Ext(c.file), "."))
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(folder, c.file))
	if err != nil {
		return err
	}
	if _, err := to.WriteTo(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
