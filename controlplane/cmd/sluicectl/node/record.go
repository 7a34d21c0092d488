package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sigs.k8s.io/yaml"
)

// RecordFile has the plan of this server, from the first step on.
const RecordFile = "/etc/sluice/node.yaml"

const recordHeader = "# How sluicectl node has set this server up. A run of the same command continues or checks that.\n"

// readRecord returns the plan of an earlier run; nil: there was none.
func (s *System) readRecord() (*Plan, error) {
	text, err := os.ReadFile(s.path(RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan := &Plan{Fabrics: map[string]string{}}
	if err := yaml.UnmarshalStrict(text, plan); err != nil {
		return nil, fmt.Errorf("%s: %w", RecordFile, err)
	}
	return plan, nil
}

// NodeName returns the name under which a command has set this server up; empty: none has.
func (s *System) NodeName() (string, error) {
	plan, err := s.readRecord()
	if err != nil || plan == nil {
		return "", err
	}
	return plan.Name, nil
}

func (s *System) writeRecord(plan *Plan) (changed bool, err error) {
	text, err := yaml.Marshal(plan)
	if err != nil {
		return false, err
	}
	return s.put(RecordFile, recordHeader+string(text), ownerRoot)
}
