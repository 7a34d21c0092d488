package node

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// answers sets whether a portal of the target responds.
func (m *machine) answers(portal string, answering bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.portals[portal] = answering
}

// does replaces the behaviour of a command.
func (m *machine) does(part string, do func(host.Command) (string, error)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.instead[part] = do
}

// stagedEarly returns a plugin that runs Keep, with a volume that was staged while the target had one portal.
func stagedEarly(t *testing.T, secrets map[string]string) (*machine, *volume) {
	t.Helper()
	m := newMachine(t)
	delete(m.portals, two)
	v := m.volume(m.start(), rawBlock())
	v.secrets = secrets
	if err := v.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { v.Keep(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	return m, v
}

// aLook is the longest time until Keep has checked a target.
const aLook = checkInterval + checkJitter + time.Second

// afterALook waits for a regular check of Keep. The next one follows after a minute at the earliest, unless a call asks for it.
func afterALook(m *machine) {
	for before := len(m.commands("sendtargets")); len(m.commands("sendtargets")) == before; {
		time.Sleep(time.Second)
	}
	time.Sleep(minCheckInterval + time.Second)
}

func TestALaterPortalBecomesAPathOfStagedVolumes(t *testing.T) {
	for name, secrets := range map[string]map[string]string{"without CHAP": nil, "with CHAP": chapSecrets()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, v := stagedEarly(t, secrets)
				if paths := m.glob("block/dm-*/slaves/*"); len(paths) != 1 {
					t.Fatalf("paths at first: %v", paths)
				}
				m.answers(two, true)
				time.Sleep(aLook)
				synctest.Wait()
				if paths := m.glob("block/dm-*/slaves/*"); len(paths) != 2 {
					t.Errorf("paths: %v", paths)
				}
				if !maps.Equal(m.records[one], m.records[two]) || m.records[two]["node.session.auth.password"] != secrets["node.session.auth.password"] {
					t.Errorf("logged in otherwise: %v, %v", m.records[one], m.records[two])
				}
				if shown := append(m.commands(secret), m.commands(mutualSecret)...); len(shown) > 0 {
					t.Errorf("secrets are shown: %v", shown)
				}
				if err := v.unstage(t.Context()); err != nil {
					t.Fatal(err)
				}
				m.nothingLeft()
			})
		})
	}
}

func TestAPortalThatRefusesIsTriedLessAndLessAndLogsInWhenItLets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := stagedEarly(t, nil)
		m.answers(two, false) // it is listed, and refuses logins
		const long = 4 * time.Hour
		time.Sleep(long)
		// Pauses of 1, 2, 4, 8, 16 and then always 32 minutes, each longer by up to one interval of checks.
		tries := len(m.commands("-p " + two + " --login"))
		if tries < 10 || tries > 13 {
			t.Errorf("%d tries in %s", tries, long)
		}
		asked := len(m.commands("sendtargets"))
		if most, least := int(long/checkInterval)+2, int(long/(checkInterval+checkJitter))-2; asked > most || asked < least {
			t.Errorf("asked %d times in %s", asked, long)
		}
		if elsewhere := m.commands("sendtargets -p " + two); len(elsewhere) > 0 {
			t.Error("asked at a portal that there is no session with")
		}
		m.answers(two, true)
		time.Sleep(longestRest + aLook)
		if have := m.glob("class/iscsi_session/*"); len(have) != 2 {
			t.Errorf("sessions: %v", have)
		}
	})
}

func TestCallsForAVolumeHaveItsTargetLookedAtSoonButNotOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, v := stagedEarly(t, nil)
		afterALook(m) // the check that the stage asked for
		afterALook(m)
		before := len(m.commands("sendtargets"))
		m.answers(two, true)
		var now, most int // concurrent discoveries
		m.does("sendtargets", func(command host.Command) (string, error) {
			m.mutex.Lock()
			now++
			most = max(most, now)
			m.mutex.Unlock()
			time.Sleep(time.Second)
			m.mutex.Lock()
			defer m.mutex.Unlock()
			now--
			return m.sendTargets(command, one)
		})
		for range 30 {
			if err := v.publish(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(minCheckInterval + 2*time.Second)
		if have := m.glob("class/iscsi_session/*"); len(have) != 2 {
			t.Errorf("sessions soon after the call: %v", have)
		}
		if asked := len(m.commands("sendtargets")) - before; asked > 2 || most != 1 {
			t.Errorf("asked %d times in %s, %d at a time", asked, minCheckInterval, most)
		}
	})
}

func TestATargetThatIsBeingUnstagedIsNotLoggedInToUntilItIsStagedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, v := stagedEarly(t, nil)
		m.does("multipath -f", func(command host.Command) (string, error) { return "", failed(command, 1, "map in use") })
		m.answers(two, true)
		hasCode(t, v.unstage(t.Context()), codes.Internal, "map in use") // this takes longer than one interval of checks
		time.Sleep(aLook)
		if logins := m.commands("-p " + two + " --login"); len(logins) > 0 {
			t.Errorf("logins: %v", logins)
		}
		m.does("multipath -f", nil)
		if err := v.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		if have := m.glob("class/iscsi_session/*"); len(have) != 2 {
			t.Errorf("sessions of the volume that is staged again: %v", have)
		}
	})
}

func TestATargetWhoseLastVolumeGoesWhileItsPortalsAreAskedForIsNotLoggedInTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, v := stagedEarly(t, nil)
		asked, goOn := make(chan struct{}), make(chan struct{})
		m.does("sendtargets", func(host.Command) (string, error) {
			asked <- struct{}{}
			<-goOn
			return one + ",1 " + iqn + "\n" + two + ",2 " + iqn + "\n", nil
		})
		m.does("-o delete", func(host.Command) (string, error) { return "", nil }) // the node record keeps the credentials
		m.answers(two, true)
		<-asked
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		synctest.Wait()
		clear(m.records)
		m.nothingLeft()
		if logins := m.commands("-p " + two); len(logins) > 0 {
			t.Errorf("it was logged in: %v", logins)
		}
	})
}

func TestAPathThatCameLaterAndLeadsToAnotherVolumeDoesNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := stagedEarly(t, nil)
		m.mutex.Lock()
		m.shows[5] = naaWrong
		m.mutex.Unlock()
		m.answers(two, true)
		time.Sleep(aLook)
		if disks, paths := m.glob("block/sd*"), m.glob("block/dm-*/slaves/*"); len(disks) != 1 || len(paths) != 1 {
			t.Errorf("disks %v, paths %v", disks, paths)
		}
		if commands := strings.Join(m.commands("add path"), "; "); strings.Count(commands, "add path") != 1 {
			t.Errorf("multipathd got it: %s", commands)
		}
	})
}

func TestAStageThatLogsInAtALaterPortalGivesThePathToTheOthersOfTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, v := stagedEarly(t, nil)
		afterALook(m) // the check that the stage asked for
		afterALook(m)
		m.mutex.Lock()
		m.portals[two], m.shows[6], m.sectors[6] = true, "3000000000000006", sectors
		m.mutex.Unlock()
		second := m.volume(v.Service, rawBlock())
		second.id, second.attachment.LUN, second.attachment.NAA = "volume-6", 6, "3000000000000006"
		if err := second.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(minCheckInterval + time.Second)
		if paths := m.glob("block/dm-*/slaves/*"); len(paths) != 4 {
			t.Errorf("paths of two volumes: %v", paths)
		}
	})
}
