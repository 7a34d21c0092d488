package hostconfig

import (
	"fmt"
	"slices"
	"strings"
)

// initiatorSetting is a setting of open-iscsi.
type initiatorSetting struct{ Name, Value string }

// initiatorSettings returns the settings of open-iscsi that all Linux hosts need. sluice-host checks the same file.
func initiatorSettings() ([]initiatorSetting, error) {
	text, err := files.ReadFile("templates/iscsid.conf")
	if err != nil {
		return nil, err
	}
	var all []initiatorSetting
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		all = append(all, initiatorSetting{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return all, nil
}

func initiatorSettingNamed(name string) (string, error) {
	all, err := initiatorSettings()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(s initiatorSetting) bool { return s.Name == name })
	if at < 0 {
		return "", fmt.Errorf("templates/iscsid.conf has no setting %s", name)
	}
	return all[at].Value, nil
}
