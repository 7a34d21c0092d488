package main

import (
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var colours = []color.Color{
	color.RGBA{R: 0x1a, G: 0x73, B: 0xe8, A: 0xff}, color.RGBA{R: 0xe8, G: 0x71, B: 0x0a, A: 0xff},
	color.RGBA{R: 0x18, G: 0x80, B: 0x38, A: 0xff}, color.RGBA{R: 0x9a, G: 0xa0, B: 0xa6, A: 0xff},
}

// writePlot writes an SVG with a panel for each kind of fault: which share of stalls was at most how long.
func writePlot(records []record, path string) error {
	var plots []*plot.Plot
	for _, kind := range kinds {
		p, err := shares(kind, groups(records))
		if err != nil {
			return err
		}
		if p != nil {
			plots = append(plots, p)
		}
	}
	canvas := vgsvg.New(vg.Length(len(plots))*12*vg.Centimeter, 9*vg.Centimeter)
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: vg.Centimeter, PadRight: vg.Centimeter / 2}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, draw.New(canvas))[0] {
		plots[i].Draw(c)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close() // the first failure is the one to tell
		return err
	}
	return file.Close()
}

// shares is nil where there are no such faults.
func shares(kind string, all []group) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = kind
	p.X.Label.Text, p.Y.Label.Text = "stall, seconds", "share of stalls"
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, 1
	p.Legend.Top = false
	drawn := 0
	for _, g := range all {
		if g.kind != kind {
			continue
		}
		points := plotter.XYs{{X: 0, Y: 0}}
		for i, gap := range g.gaps {
			before := points[len(points)-1].Y
			points = append(points, plotter.XY{X: gap, Y: before}, plotter.XY{X: gap, Y: float64(i+1) / float64(len(g.gaps))})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color = colours[drawn%len(colours)]
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%d LUNs", g.luns), line)
		drawn++
	}
	if drawn == 0 {
		return nil, nil
	}
	return p, nil
}
