package history

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const run = 42

var place = Place{1, 7}

func write(v Value, call, end int64) Operation {
	return Operation{Place: place, Kind: Write, New: v, Call: call, Return: end}
}

func read(v Value, call, end int64) Operation {
	return Operation{Place: place, Kind: Read, Got: v, Call: call, Return: end}
}

func maybe(v Value, call, end int64) Operation {
	o := write(v, call, end)
	o.Maybe = true
	return o
}

func swap(old, v Value, call, end int64, swapped bool) Operation {
	return Operation{Place: place, Kind: Swap, Old: old, New: v, Swapped: swapped, Call: call, Return: end}
}

func maybeSwap(old, v Value, call, end int64) Operation {
	o := swap(old, v, call, end, false)
	o.Maybe = true
	return o
}

func TestHistoriesThatAreRightAreFoundRight(t *testing.T) {
	for name, history := range map[string][]Operation{
		"nothing but zeros":               {read(0, 1, 2)},
		"one after the other":             {write(1, 1, 2), read(1, 3, 4), write(2, 5, 6), read(2, 7, 8)},
		"a read during a write, old":      {write(1, 1, 9), read(0, 2, 3)},
		"a read during a write, new":      {write(1, 1, 9), read(1, 2, 3), read(1, 4, 5)},
		"no answer, executed":             {maybe(1, 1, Never), read(1, 5, 6)},
		"no answer, not executed":         {maybe(1, 1, Never), read(0, 5, 6)},
		"no answer, executed late":        {maybe(1, 1, Never), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7)},
		"executed twice while it lasts":   {maybe(1, 1, 9), write(1, 6, 9), write(2, 3, 4), read(2, 4, 5), read(1, 10, 11)},
		"original, other's write, retry":  {maybe(1, 1, 9), read(1, 2, 3), write(2, 4, 5), read(2, 5, 5), write(1, 6, 9), read(1, 10, 11)},
		"swaps":                           {swap(0, 1, 1, 2, true), swap(0, 2, 3, 4, false), read(1, 5, 6)},
		"a swap without answer, retried":  {maybeSwap(0, 1, 1, 6), swap(0, 1, 4, 6, false), read(1, 7, 8)},
		"a swap without answer, not done": {maybeSwap(0, 1, 1, 6), swap(0, 1, 4, 6, true), read(1, 7, 8)},
	} {
		if verdict := Linearizable(history, time.Minute, nil); len(verdict.Wrong)+len(verdict.Undecided) > 0 {
			t.Errorf("%s: %v", name, verdict)
		}
		if found := Missing(history); found != nil {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestHistoriesThatAreWrongAreFoundWrong(t *testing.T) {
	for name, c := range map[string]struct {
		history []Operation
		missing string // the text of the simple search, if it finds the violation
	}{
		"a stale read": {[]Operation{write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)}, "missing"},
		"an acknowledged write is lost": {
			[]Operation{write(1, 1, 2), read(0, 5, 6)}, "missing"},
		"a retry is overtaken by its original": {
			[]Operation{maybe(1, 1, 7), write(1, 6, 7), write(2, 8, 9), read(2, 10, 11), read(1, 12, 13)}, "missing"},
		"two readers see two orders": {
			[]Operation{write(1, 1, 9), write(2, 1, 9), read(1, 2, 3), read(2, 4, 5), read(1, 6, 7)}, ""},
		"a value that no client wrote":        {[]Operation{write(1, 1, 2), read(3, 3, 4)}, "never written"},
		"a value from the future":             {[]Operation{read(1, 1, 2), write(1, 3, 4)}, "future"},
		"a refused swap was executed":         {[]Operation{write(1, 1, 2), swap(0, 2, 3, 4, false), read(2, 5, 6)}, "never written"},
		"a swap matched what was not there":   {[]Operation{write(1, 1, 2), swap(0, 2, 3, 4, true), read(2, 5, 6)}, ""},
		"a miscompare of what was there":      {[]Operation{write(1, 1, 2), swap(1, 2, 3, 4, false), read(1, 5, 6)}, ""},
		"a bounded maybe comes after its end": {[]Operation{maybe(1, 1, 2), read(0, 3, 4), read(1, 5, 6)}, ""},
		"seen, then unseen":                   {[]Operation{maybe(1, 1, Never), read(1, 2, 3), read(0, 4, 5)}, ""},
	} {
		if verdict := Linearizable(c.history, time.Minute, nil); len(verdict.Wrong) != 1 || !strings.Contains(verdict.Wrong[0], "!") {
			t.Errorf("%s: %v", name, verdict)
		}
		found := strings.Join(Missing(c.history), "\n")
		if (found == "") != (c.missing == "") || !strings.Contains(found, c.missing) {
			t.Errorf("%s: the simple search says %q", name, found)
		}
	}
}

func TestBlocksAreJudgedEachByItself(t *testing.T) {
	good, bad := write(1, 1, 2), read(1, 3, 4)
	bad.Place.Block++
	verdict := Linearizable([]Operation{good, read(1, 3, 4), bad}, time.Minute, nil)
	if verdict.Blocks != 2 || len(verdict.Wrong) != 1 || !strings.Contains(verdict.Wrong[0], "block 8") {
		t.Errorf("%+v", verdict)
	}
}

// register executes operations one at a time, at a random moment of each, or sometimes forgets an acknowledged write.
func register(seed uint64, operations int, lose bool) []Operation {
	random := rand.New(rand.NewPCG(seed, 1))
	var history []Operation
	var state Value
	ends := make([]int64, 6)
	now := int64(0)
	for i := range operations {
		client := random.IntN(len(ends))
		now += 10
		call := max(ends[client]+1, now-int64(random.IntN(40)))
		if call > now {
			now = call
		}
		ends[client] = now + int64(random.IntN(40)) + 1
		o := Operation{Client: client, Place: place, Call: call, Return: ends[client]}
		switch next := NewValue(client+1, uint64(i)); random.IntN(4) {
		case 0, 1:
			o.Got = state
		case 2:
			o.Kind, o.New = Write, next
			executed := true
			if random.IntN(10) == 0 {
				o.Maybe, executed = true, random.IntN(2) == 0
			}
			if lose && !o.Maybe && random.IntN(5) == 0 {
				executed = false
			}
			if executed {
				state = next
			}
		case 3:
			o.Kind, o.Old, o.New = Swap, state, next
			if random.IntN(4) == 0 {
				o.Old = NewValue(9, 9)
			}
			if o.Swapped = o.Old == state; o.Swapped {
				state = next
			}
		}
		history = append(history, o)
	}
	now += 100
	return append(history, Operation{Place: place, Got: state, Call: now, Return: now + 1})
}

func TestARegisterIsFoundRightAndOneThatLosesWritesWrong(t *testing.T) {
	for seed := range uint64(30) {
		if verdict := Linearizable(register(seed, 800, false), time.Minute, nil); len(verdict.Wrong)+len(verdict.Undecided) > 0 {
			t.Fatalf("seed %d: %v", seed, verdict)
		}
		if found := Missing(register(seed, 800, false)); found != nil {
			t.Fatalf("seed %d: %v", seed, found)
		}
		if verdict := Linearizable(register(seed, 800, true), time.Minute, nil); len(verdict.Wrong) == 0 {
			t.Errorf("seed %d: a register that loses writes was not found out", seed)
		}
	}
}

func TestABlockThatIsTornOrMisplacedIsFoundOut(t *testing.T) {
	one, two := NewValue(1, 1).Encode(run, place), NewValue(1, 2).Encode(run, place)
	for _, v := range []Value{0, NewValue(1, 1), NewValue(70, 1<<39)} {
		if got, err := Decode(v.Encode(run, place), run, place); err != nil || got != v {
			t.Errorf("%v came back as %v, %v", v, got, err)
		}
	}
	for at := 1; at < BlockSize; at++ {
		for _, torn := range [][]byte{append(one[:at:at], two[at:]...), append(make([]byte, at), one[at:]...), append(one[:at:at], make([]byte, BlockSize-at)...)} {
			if _, err := Decode(torn, run, place); err == nil && string(torn) != string(one) && string(torn) != string(two) {
				t.Errorf("torn at %d: not found out", at)
			}
		}
	}
	if _, err := Decode(one, run, Place{1, 8}); !errors.Is(err, ErrMisplace) {
		t.Errorf("elsewhere: %v", err)
	}
	if _, err := Decode(one, run+1, place); !errors.Is(err, ErrMisplace) {
		t.Errorf("of another run: %v", err)
	}
	if _, err := Decode(one[:100], run, place); !errors.Is(err, ErrTorn) {
		t.Errorf("too short: %v", err)
	}
}
