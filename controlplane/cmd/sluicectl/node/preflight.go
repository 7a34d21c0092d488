package node

import (
	"context"
	"fmt"
	"io"
)

// Options are what the administrator gives; empty fields have defaults.
type Options struct {
	Name    string
	Address string
	Pools   []string
	// Fabrics are NAME=CIDR. The CIDR is the subnet, or this server's address with the length of its prefix.
	Fabrics []string
}

// Problem is something that prevents a server from becoming a node, or that an administrator should know.
type Problem struct {
	What, Remedy string
	// Warning: the server can become a node nevertheless.
	Warning bool
}

// Preflight finds out whether this server can become a node, and how. It changes nothing.
type Preflight struct {
	System  *System
	Options Options
	// Plan is complete if no check found a problem.
	Plan *Plan
	// Earlier: a run of init or join on this server has begun before.
	Earlier bool
	// Joining: the server joins a system, whose fabrics it does not know yet.
	Joining bool
	// CheckOnly: no set-up follows, so it does not matter by which command an earlier one was made.
	CheckOnly bool

	addresses []string
}

// check is one subject of the preflight.
type check struct {
	subject string
	run     func(*Preflight, context.Context) (fact string, problems []Problem)
}

// checks are in the order in which later ones use the plan of earlier ones.
var checks = []check{
	{"user", (*Preflight).checkUser},
	{"earlier set-up", (*Preflight).checkEarlier},
	{"systemd", (*Preflight).checkSystemd},
	{"packages", (*Preflight).checkPackages},
	{"kernel", (*Preflight).checkKernel},
	{"io_uring", (*Preflight).checkRing},
	{"locked memory", (*Preflight).checkMemlock},
	{"clock", (*Preflight).checkClock},
	{"name", (*Preflight).checkName},
	{"address", (*Preflight).checkAddress},
	{"fabrics", (*Preflight).checkFabrics},
	{"ports", (*Preflight).checkPorts},
	{"pools", (*Preflight).checkPools},
}

// NewPreflight prepares the checks of a server.
func NewPreflight(system *System, options Options) *Preflight {
	return &Preflight{System: system, Options: options, Plan: &Plan{Fabrics: map[string]string{}, Member: true}}
}

// Run runs all checks, prints each result, and returns how many problems prevent the set-up.
func (p *Preflight) Run(ctx context.Context, to io.Writer) int {
	prevented := 0
	for _, one := range checks {
		fact, problems := one.run(p, ctx)
		if fact != "" {
			_, _ = fmt.Fprintf(to, "ok       %s: %s\n", one.subject, fact)
		}
		for _, problem := range problems {
			word := "warning"
			if !problem.Warning {
				word = "problem"
				prevented++
			}
			_, _ = fmt.Fprintf(to, "%s  %s: %s\n         remedy: %s\n", word, one.subject, problem.What, problem.Remedy)
		}
	}
	return prevented
}

// one returns a single problem.
func one(remedy, what string, values ...any) []Problem {
	return []Problem{{What: fmt.Sprintf(what, values...), Remedy: remedy}}
}
