package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// progress shows the progress of an operation on standard error: a bar on a terminal, else a line for each change. Its methods
// are safe for concurrent use.
type progress struct {
	to       io.Writer
	terminal bool

	mutex     sync.Mutex
	text      string
	done, all int64
	line      string
	bar       *progressbar.ProgressBar
}

func newProgress(to io.Writer) *progress {
	return &progress{to: to, terminal: isTerminal(to)}
}

// describe sets the description of what the command waits for.
func (p *progress) describe(text string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.text = text
	p.show()
}

// count sets the number of finished parts, and of all parts.
func (p *progress) count(done, all int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done, p.all = done, all
	p.show()
}

func (p *progress) show() {
	if p.terminal {
		p.showBar()
		return
	}
	line := p.text
	if p.all > 0 { // in tenths, so that many parts do not fill a log
		line = fmt.Sprintf("%d of %d: %s", p.done, p.all, p.text)
		if p.done != 0 && p.done*10/p.all == (p.done-1)*10/p.all {
			return
		}
	}
	if p.text != "" && line != p.line {
		_, _ = fmt.Fprintln(p.to, "waiting:", line)
		p.line = line
	}
}

// widestText bounds a description to one line of most terminals, in characters.
const widestText = 90

func (p *progress) showBar() {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(p.to), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
			progressbar.OptionSpinnerType(14))
	}
	text := []rune(p.text)
	if len(text) > widestText {
		text = append(text[:widestText], '…')
	}
	if p.all > 0 {
		p.bar.ChangeMax64(p.all)
		if p.done < p.all { // at the end the bar disappears; the missing part must stay visible
			_ = p.bar.Set64(p.done)
		}
	}
	p.bar.Describe(string(text))
}

func (p *progress) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
