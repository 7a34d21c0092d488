package simtest

import "time"

// Recover ends all faults and runs everything until all that can recover has recovered: every process runs, one replica leads,
// and everything is received and stored in order.
func (w *Simulation) Recover() {
	w.faulty = false
	clear(w.cut)
	clear(w.cutPeers)
	w.heal()
	var asleep []*process
	for _, name := range w.names {
		if p := w.running[name]; w.gateway(name) != nil && p.frozen {
			w.disconnect(p)
			asleep = append(asleep, p)
		} else if w.gateway(name) != nil {
			w.reconnect(name)
		}
	}
	w.elect()
	for _, old := range w.leaders { // a deposed leader still stores its earlier decisions
		for len(old.pending) > 0 {
			old.carryOut(w, 0)
		}
	}
	l := w.leaders[len(w.leaders)-1]
	if len(asleep) > 0 {
		w.runWhileAsleep(l, asleep)
	}
	for quiet, turns := 0, 0; quiet < quietRounds && turns < maxRounds; turns++ {
		revision := w.store.revision
		w.stepAll(l)
		quiet++
		if w.store.revision != revision {
			quiet = 0
		} else {
			w.now = w.now.Add(10 * time.Second) // it only waits for the clock
		}
	}
}

// reconnect makes a gateway run and connect.
func (w *Simulation) reconnect(name string) {
	if !w.running[name].alive {
		w.start(name)
	}
	if !w.running[name].stream {
		w.connect(w.running[name])
	}
	if !w.running[name].stream {
		w.start(name) // it was replaced, and starts again
	}
}

// runWhileAsleep runs the others while some processes sleep, until the sleeping ones are declared dead. Then these wake up, and
// continue where they were before they receive anything.
func (w *Simulation) runWhileAsleep(l *leader, asleep []*process) {
	for range sleepRounds {
		w.now = w.now.Add(time.Second)
		w.stepAll(l)
	}
	for _, p := range asleep {
		p.frozen = false
		if w.gateway(p.name) == nil {
			continue
		}
		w.reconnect(p.name)
		for range 3 {
			w.connectClient(p)
			w.exchangeMessages(p)
			for _, v := range w.volumes() {
				w.act(p, v)
			}
		}
		w.write(p)
	}
}

// exchangeMessages handles all requests of a gateway and their answers.
func (w *Simulation) exchangeMessages(p *process) {
	for range len(p.requests) {
		w.answer(p)
	}
	for p.stream && p.runs() && len(p.answers) > 0 {
		w.listen(p)
	}
}

// sleepRounds are enough for a sleeping gateway to be declared dead and fenced, quietRounds for the longest wait, maxRounds for
// anything to recover.
const (
	sleepRounds = 16
	quietRounds = 16
	maxRounds   = 600
)

// stepAll is a round in which every process takes one step.
func (w *Simulation) stepAll(l *leader) {
	w.now = w.now.Add(500 * time.Millisecond)
	l.listen(w, len(w.store.log))
	l.listenOfClients(w, len(w.store.clientLog))
	l.plan()
	for _, key := range l.view.Everything() {
		l.decide(w, key)
	}
	for len(l.pending) > 0 {
		l.carryOut(w, 0)
	}
	for _, name := range w.names {
		p := w.running[name]
		if p.runs() {
			w.deliverAll(p)
		}
		w.connectClient(p)
		for _, v := range w.volumes() {
			w.act(p, v)
		}
		for p.stream && len(p.outbox) > 0 {
			w.deliver(p)
		}
		w.exchangeMessages(p)
		w.write(p)
		w.work(p)
		w.checkPeers(p)
		w.reportPool(p)
	}
}
