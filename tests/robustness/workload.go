package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
	"sluice.dev/sluice/tests/robustness/history"
)

// workload has clients on hosts that use few blocks, so that they interact.
type workload struct {
	seed     uint64
	run      uint64 // identifies the run in its blocks
	hosts    []*initiator.Multipath
	clients  int // for each host
	swaps    int // of ten operations
	places   []history.Place
	recorder *history.Recorder
	// dedicated: some clients of each host use one device only, so they go on when another one hangs.
	dedicated bool
	devices   []*device

	mu       sync.Mutex
	counts   map[string]int
	refusals []string
	longest  time.Duration
}

const (
	operationTimeout = 60 * time.Second // longer than any fault and its consequences
	thinkLongest     = 6 * time.Millisecond
	refusalsKept     = 10
)

// act runs all clients until ctx ends and all have completed their operations.
func (w *workload) act(ctx context.Context) {
	w.counts = map[string]int{}
	var all sync.WaitGroup
	number := 0
	for _, multipath := range w.hosts {
		for i := range w.clients {
			number++
			c := client{workload: w, number: number, multipath: multipath, places: w.placesOf(i),
				random: rand.New(rand.NewPCG(w.seed, uint64(number))), known: map[history.Place]history.Value{}}
			all.Go(func() { c.act(ctx) })
		}
	}
	all.Wait()
}

// placesOf returns the places that a client of a host uses, from 0.
func (w *workload) placesOf(client int) []history.Place {
	if !w.dedicated || client >= len(w.devices) {
		return w.places
	}
	return slices.DeleteFunc(slices.Clone(w.places), func(p history.Place) bool { return !slices.Contains(w.devices[client].luns, p.LUN) })
}

// hostOf returns the host, from 0, of a client's number, which is from 1.
func hostOf(client int) int { return (client - 1) / clientsOfHost }

type client struct {
	*workload
	places    []history.Place
	number    int
	multipath *initiator.Multipath
	random    *rand.Rand
	known     map[history.Place]history.Value // its last observation there
	count     uint64
}

func (c *client) act(ctx context.Context) {
	for ctx.Err() == nil {
		place := c.places[c.random.IntN(len(c.places))]
		what := c.random.IntN(10)
		// A started operation may complete: an operation that is cut off proves less.
		limited, cancel := context.WithTimeout(context.Background(), operationTimeout)
		began := time.Now()
		var result initiator.Result
		switch {
		case what >= 10-c.swaps: // the value that it read some time ago has been changed by others
			if result = c.read(limited, place); result.Outcome == initiator.OK {
				c.tally(place, result, began)
				began = time.Now()
				result = c.swap(limited, place)
			}
		case what < 5:
			result = c.read(limited, place)
		default:
			result = c.write(limited, place)
		}
		cancel()
		c.tally(place, result, began)
		_ = netns.Wait(ctx, time.Duration(c.random.Int64N(int64(thinkLongest)))) // the loop checks ctx
	}
}

func (w *workload) tally(place history.Place, result initiator.Result, began time.Time) {
	ended := time.Now()
	reported := w.reportsFault(place, result, began, ended)
	w.mu.Lock()
	defer w.mu.Unlock()
	outcome := result.Outcome.String()
	if reported {
		outcome = deviceErrors
	}
	w.counts[outcome]++
	w.counts["retries"] += result.Retries
	w.longest = max(w.longest, ended.Sub(began))
	for _, attempt := range result.Attempts {
		if attempt.Effect == initiator.EffectMaybe {
			w.counts["lost: "+attempt.Why]++
		}
	}
	var answer *initiator.AnswerError
	if result.Outcome != initiator.OK && !reported && errors.As(result.Err, &answer) && len(w.refusals) < refusalsKept {
		w.refusals = append(w.refusals, result.Err.Error())
	}
}

const deviceErrors = "ended with an error of the device"

// reportsFault reports whether a command ended with the sense data of an error that its device had meanwhile.
func (w *workload) reportsFault(place history.Place, result initiator.Result, began, ended time.Time) bool {
	var answer *initiator.AnswerError
	if result.Outcome == initiator.OK || !errors.As(result.Err, &answer) {
		return false
	}
	switch sense := answer.Response.Sense; {
	case sense.Key == initiator.SenseMediumError, sense == initiator.Sense{Key: initiator.SenseDataProtect, Code: 0x27, Qualifier: 0x07}:
	default:
		return false
	}
	device := deviceOf(w.devices, place.LUN)
	return device != nil && device.refused(began, ended)
}

func (c *client) read(ctx context.Context, place history.Place) initiator.Result {
	result := c.multipath.Run(ctx, initiator.Read(place.LUN, place.Block, 1, history.BlockSize))
	if result.Outcome == initiator.OK {
		attempt := result.Attempts[len(result.Attempts)-1]
		c.found(place, result.Response.Data, attempt)
	}
	return result
}

func (c *client) found(place history.Place, data []byte, attempt initiator.Attempt) {
	value, err := history.Decode(data, c.run, place)
	if err != nil {
		c.recorder.AddBad(place, attempt.Portal, err)
		return
	}
	c.known[place] = value
	c.recorder.Add(history.Operation{Client: c.number, Place: place, Kind: history.Read, Got: value,
		Call: c.recorder.At(attempt.Sent), Return: c.recorder.At(attempt.Ended), Via: attempt.Portal})
}

func (c *client) next() history.Value {
	c.count++
	return history.NewValue(c.number, c.count)
}

func (c *client) write(ctx context.Context, place history.Place) initiator.Result {
	value := c.next()
	result := c.multipath.Run(ctx, initiator.Write(place.LUN, place.Block, value.Encode(c.run, place), history.BlockSize))
	c.changed(history.Operation{Kind: history.Write, Place: place, New: value}, result)
	return result
}

func (c *client) swap(ctx context.Context, place history.Place) initiator.Result {
	old, value := c.known[place], c.next()
	result := c.multipath.Run(ctx, initiator.CompareAndWrite(place.LUN, place.Block, old.Encode(c.run, place), value.Encode(c.run, place)))
	c.changed(history.Operation{Kind: history.Swap, Place: place, Old: old, New: value,
		Swapped: result.Response.Status == initiator.StatusGood}, result)
	return result
}

// changed records every attempt that may have changed the block. An attempt without an answer may be executed until a later one
// is answered, and not after that (DESIGN R6: a retry is not overtaken by its original). If none is answered, it may be executed
// at any time.
func (c *client) changed(o history.Operation, result initiator.Result) {
	o.Client = c.number
	last := int64(history.Never)
	if result.Outcome == initiator.OK {
		last = c.recorder.At(result.Attempts[len(result.Attempts)-1].Ended)
	}
	for _, attempt := range result.Attempts {
		o := o
		o.Via = attempt.Portal
		o.Call, o.Return = c.recorder.At(attempt.Sent), last
		if o.Maybe = attempt.Effect == initiator.EffectMaybe; o.Maybe {
			o.Swapped = false
			o.Via += ", " + attempt.Why
		}
		if attempt.Bounded {
			o.Return = c.recorder.At(attempt.Ended)
		}
		c.recorder.Add(o)
	}
}

// readAll reads every block once through every path: the final content is part of the history.
func (w *workload) readAll(ctx context.Context) error {
	reader := client{workload: w, known: map[history.Place]history.Value{}}
	for _, path := range w.hosts[0].Paths {
		session := path.Session()
		if session == nil {
			return fmt.Errorf("%s: no session", path.Portal)
		}
		for _, place := range w.places {
			attempt := initiator.Attempt{Portal: path.Portal, Sent: time.Now()}
			data, err := session.Good(ctx, initiator.Read(place.LUN, place.Block, 1, history.BlockSize))
			attempt.Ended = time.Now()
			if err != nil {
				return fmt.Errorf("%v: %w", place, err)
			}
			reader.found(place, data, attempt)
		}
	}
	return nil
}

// readDisk adds the blocks in the LUNs' storage, as far as it is accessible.
func (w *workload) readDisk(block func(place history.Place) ([]byte, bool, error)) error {
	reader := client{workload: w, known: map[history.Place]history.Value{}}
	for _, place := range w.places {
		attempt := initiator.Attempt{Portal: "disk", Sent: time.Now()}
		data, whole, err := block(place)
		attempt.Ended = time.Now()
		if err != nil {
			return fmt.Errorf("%v: %w", place, err)
		}
		if whole {
			reader.found(place, data, attempt)
		}
	}
	return nil
}

func isLost(err error) bool {
	var lost *initiator.LostError
	return errors.As(err, &lost)
}
