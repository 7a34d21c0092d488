package main

import "errors"

// Stages of the memory measurement.
const (
	empty    = "one LUN, no session"
	full     = "all LUNs, no session"
	loggedIn = "all LUNs, all sessions"
	used     = "the same, each session has used some LUNs"
)

// memory of all gateways together, at a stage of the run.
type memory struct {
	What     string `json:"what"` // "memory"
	Stage    string `json:"stage"`
	Gateways int    `json:"gateways"`
	LUNs     int    `json:"luns"`
	Sessions int    `json:"sessions"`
	// RSS counts memory that gateways share for each of them, PSS once for all of them; in bytes.
	RSS int64 `json:"rssBytes"`
	PSS int64 `json:"pssBytes"`
}

// death is a gateway that was killed and started again.
type death struct {
	What string `json:"what"` // "death"
	// LUNs is the number of LUNs that it owned; all of them had another owner after Failover seconds.
	LUNs     int     `json:"luns"`
	Failover float64 `json:"failoverSeconds"`
	// Seconds from its start until its portals accepted connections, and until a host was logged in and a LUN answered.
	PortalsOpen float64 `json:"portalsOpenSeconds"`
	FirstAnswer float64 `json:"firstAnswerSeconds"`
}

// outcome is the record of the run as a whole.
type outcome struct {
	What     string `json:"what"` // "run"
	Gateways int    `json:"gateways"`
	LUNs     int    `json:"luns"`
	Sessions int    `json:"sessions"`
	// Made is the time until all LUNs were created and owned, Login until all sessions were established; seconds.
	Made  float64 `json:"madeSeconds,omitempty"`
	Login float64 `json:"loginSeconds,omitempty"`
	// UsedLUNs is the number of LUNs that a session has used in the last stage of memory.
	UsedLUNs int `json:"usedLUNs"`
	// Failed is the reason why the run ended early; empty: it did not.
	Failed string `json:"failed,omitempty"`
}

// figures are the results of a run. write converts them to records, from which bench/report/scale.py makes the report.
type figures struct {
	Gateways, LUNs, Sessions int
	// Made is the time until all LUNs were created and owned, Login until all sessions were established; seconds.
	Made, Login float64
	Memory      []memory
	Deaths      []death
	// Failed is the reason why the run ended early; empty: it did not.
	Failed string
}

// write writes the records, if anything was measured.
func (f *figures) write(record func(any) error) error {
	if f == nil || len(f.Memory) == 0 {
		return nil
	}
	failed := record(outcome{What: "run", Gateways: f.Gateways, LUNs: f.LUNs, Sessions: f.Sessions, Made: f.Made, Login: f.Login,
		UsedLUNs: usedLUNs, Failed: f.Failed})
	for _, m := range f.Memory {
		failed = errors.Join(failed, record(m))
	}
	for _, d := range f.Deaths {
		failed = errors.Join(failed, record(d))
	}
	return failed
}
