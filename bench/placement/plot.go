package main

import (
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var colours = []color.Color{
	color.RGBA{R: 0x1a, G: 0x73, B: 0xe8, A: 0xff}, color.RGBA{R: 0xe8, G: 0x71, B: 0x0a, A: 0xff},
	color.RGBA{R: 0x18, G: 0x80, B: 0x38, A: 0xff}, color.RGBA{R: 0x9a, G: 0xa0, B: 0xa6, A: 0xff},
	color.RGBA{R: 0xa1, G: 0x42, B: 0xf4, A: 0xff},
}

func panels(records []record) ([]*plot.Plot, error) {
	loads, err := loadPlot(records)
	if err != nil {
		return nil, err
	}
	hops, err := hopPlot(records[0])
	if err != nil {
		return nil, err
	}
	ratios, err := ratioPlot(records)
	return []*plot.Plot{loads, hops, ratios}, err
}

// writePlot writes an SVG of three panels: loads, hops, and ratios to the optimum.
func writePlot(records []record, path string) error {
	plots, err := panels(records)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(36*vg.Centimeter, 11*vg.Centimeter)
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

// loadPlot shows the sorted loads of all gateways after each step.
func loadPlot(records []record) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Load of gateways, relative to the fair share"
	p.X.Label.Text, p.Y.Label.Text = "gateways, least loaded first", "load"
	p.Y.Min, p.Y.Max = 0, 1.4
	p.Legend.Left = true
	for i, r := range records {
		if len(r.OwnerLoads) == 0 {
			continue
		}
		sorted := slices.Sorted(slices.Values(r.OwnerLoads))
		points := make(plotter.XYs, len(sorted))
		for j, load := range sorted {
			points[j].X, points[j].Y = float64(j), load
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color = colours[i%len(colours)]
		p.Add(line)
		p.Legend.Add(r.Step, line)
	}
	return p, nil
}

func hopPlot(r record) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Switches between host and owner"
	p.Y.Min = 0
	bars, err := plotter.NewBarChart(
		plotter.Values{r.RandomHops, r.OwnerHops, r.NearestHops}, vg.Points(40))
	if err != nil {
		return nil, err
	}
	bars.Color = colours[0]
	p.Add(bars)
	p.NominalX("random", "planned", "nearest, unbalanced")
	return p, nil
}

func ratioPlot(records []record) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Small clusters: switches over the least possible"
	p.X.Label.Text, p.Y.Label.Text = "ratio", "clusters"
	for _, r := range records {
		if len(r.Ratios) == 0 {
			continue
		}
		histogram, err := plotter.NewHist(plotter.Values(r.Ratios), 20)
		if err != nil {
			return nil, err
		}
		histogram.FillColor = colours[2]
		p.Add(histogram)
	}
	return p, nil
}
