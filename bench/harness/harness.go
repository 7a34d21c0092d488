// Package harness is shared by the experiments that start whole clusters (bench/experiments): their command line, their records,
// shaped links, and load from many concurrent clients.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/tests/netns"
)

// Mode determines the duration of an experiment.
type Mode int

// Modes.
const (
	Smoke Mode = iota // seconds: checks that everything runs and the output is complete
	Short             // two minutes at most
	Full              // no limit
)

// Pick returns the value for a mode.
func Pick[T any](m Mode, smoke, short, full T) T { return [...]T{smoke, short, full}[m] }

// Measurement is a record of an experiment: one measurement of a subject. Figures are in SI units.
type Measurement struct {
	Experiment string             `json:"experiment"`
	Subject    string             `json:"subject"`
	Parameters map[string]any     `json:"parameters"`
	Round      int                `json:"round"`
	Figures    map[string]float64 `json:"figures"`
	// Session has negotiated keys, as text.
	Session map[string]string `json:"session,omitempty"`
	Notes   string            `json:"notes,omitempty"`
}

// Aim is a target value for a figure, and whether it was reached.
type Aim struct {
	Experiment string  `json:"experiment"`
	Text       string  `json:"aim"`
	Value      float64 `json:"value"`
	Bound      string  `json:"bound"`
	Kept       bool    `json:"kept"`
}

// Bench is one run of an experiment.
type Bench struct {
	Name string
	Mode Mode
	// Rounds of measurement; 0: the number of the mode.
	Rounds int
	// Programs is the directory of Sluice's programs, Client that of the benchmark's; both absolute.
	Programs, Client string
	// Directory is scratch space in TMPDIR, deleted at the end.
	Directory string

	out          *os.File
	measurements []Measurement
}

// CannotRun names what this machine lacks: exit status 2.
type CannotRun struct{ Why error }

func (e *CannotRun) Error() string { return "this can't run here: " + e.Why.Error() }

const cannotRunStatus = 2

// Main runs an experiment in its own namespaces, and ends the program.
func Main(name string, run func(context.Context, *Bench) error) {
	err := start(name, run)
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	var cannot *CannotRun
	if errors.As(err, &cannot) {
		os.Exit(cannotRunStatus)
	}
	os.Exit(1)
}

func start(name string, run func(context.Context, *Bench) error) (failed error) {
	b, out, err := parse(name, os.Args[1:])
	if err != nil {
		return &CannotRun{err}
	}
	for _, program := range []string{b.Programs + "/sluice-gateway", b.Programs + "/sluice-controlplane", b.Programs + "/sluicectl",
		b.Client + "/iscsi-load"} {
		if _, err := os.Stat(program); err != nil {
			return &CannotRun{fmt.Errorf("%w (make build, bench/run.sh --smoke)", err)}
		}
	}
	if err := netns.Isolate(); err != nil {
		return &CannotRun{fmt.Errorf("it needs namespaces: %w", err)}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if b.out, err = os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, b.out.Close()) }()
	if b.Directory, err = os.MkdirTemp("", "sluice-"+name+"-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.Directory) }() // scratch
	return run(ctx, b)
}

func parse(name string, arguments []string) (*Bench, string, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	out := flags.String("out", "", "file that records are appended to, JSON lines")
	short := flags.Bool("short", false, "two minutes at most (the default)")
	full := flags.Bool("full", false, "everything, as long as it takes")
	smoke := flags.Bool("smoke", false, "seconds: does everything run")
	rounds := flags.Int("rounds", 0, "rounds; 0: as many as fit")
	programs := flags.String("bin", "build/bin", "directory of Sluice's programs")
	client := flags.String("client", "build/bench/bin", "directory of the benchmark's programs")
	if err := flags.Parse(arguments); err != nil {
		return nil, "", err
	}
	mode := Short
	switch {
	case *full && (*short || *smoke) || *short && *smoke:
		return nil, "", errors.New("--short, --full and --smoke exclude each other")
	case *full:
		mode = Full
	case *smoke:
		mode = Smoke
	}
	switch {
	case *out == "":
		return nil, "", errors.New("--out FILE is missing: where records go")
	case *rounds < 0:
		return nil, "", fmt.Errorf("--rounds %d: 0 or more are possible", *rounds)
	case flags.NArg() > 0:
		return nil, "", fmt.Errorf("%q is no option", flags.Arg(0))
	}
	b := &Bench{Name: name, Mode: mode, Rounds: *rounds}
	var err error
	if b.Programs, err = filepath.Abs(*programs); err == nil {
		b.Client, err = filepath.Abs(*client)
	}
	return b, *out, err
}

// RoundsOr returns the number of rounds, as requested or from the mode.
func (b *Bench) RoundsOr(smoke, short, full int) int {
	if b.Rounds > 0 {
		return b.Rounds
	}
	return Pick(b.Mode, smoke, short, full)
}

// Record appends a measurement.
func (b *Bench) Record(m Measurement) error {
	m.Experiment = b.Name
	b.measurements = append(b.measurements, m)
	return b.write(m)
}

// Aim appends an aim. Bound is a comparison and a number, such as `>= 1.95`.
func (b *Bench) Aim(text string, value float64, bound string) error {
	kept, err := holds(value, bound)
	if err != nil {
		return err
	}
	fmt.Printf("%-5v %s: %.4g, %s\n", map[bool]string{true: "kept", false: "MISSED"}[kept], text, value, bound)
	return b.write(Aim{b.Name, text, value, bound, kept})
}

func (b *Bench) write(line any) error {
	encoder := json.NewEncoder(b.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

func holds(value float64, bound string) (bool, error) {
	var comparison string
	var limit float64
	if _, err := fmt.Sscanf(bound, "%s %g", &comparison, &limit); err != nil {
		return false, fmt.Errorf("%q is no bound, as `>= 1.95` is: %w", bound, err)
	}
	switch comparison {
	case ">=":
		return value >= limit, nil
	case "<=":
		return value <= limit, nil
	}
	return false, fmt.Errorf("%q is no bound: it begins with >= or <=", bound)
}
