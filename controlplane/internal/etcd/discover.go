package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// discoverTimeout bounds the request to one member, and the check whether a member is reachable.
const (
	discoverTimeout = 10 * time.Second
	reachTimeout    = time.Second
)

// discover asks the members to join for the present ones, as NAME=URL. Errors: none answers; this member was not admitted;
// DirectoryLostError.
func (p *Peering) discover(directory string) ([]string, error) {
	members, err := p.present()
	if err != nil {
		return nil, err
	}
	own := peerURL(p.Address)
	admitted := false
	var found []string
	for _, member := range members {
		name := "member-" + member.ID.String()
		if slices.Contains(member.PeerURLs, own.String()) {
			// A learner without a name has never started: it has confirmed nothing, and it has no vote.
			if !member.IsLearner || member.Name != "" {
				return nil, &DirectoryLostError{directory, member.Name, p.Address}
			}
			admitted, name = true, p.Node
		}
		for _, peer := range member.PeerURLs {
			found = append(found, name+"="+peer)
		}
	}
	if !admitted {
		return nil, fmt.Errorf("the cluster has no member at %s, and this server has no data: it was removed, or never admitted; join with "+
			"a token", p.Address)
	}
	return found, nil
}

// present returns the members that the first answering member of Join knows.
func (p *Peering) present() ([]*membership.Member, error) {
	client, err := p.client(discoverTimeout)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, address := range p.Join {
		if address == p.Address {
			continue
		}
		members, err := membersOf(client, address)
		if err == nil {
			return members, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	if len(failures) == 0 {
		return nil, errors.New("--etcd-join names only this server: name the peer addresses of the others")
	}
	return nil, fmt.Errorf("no member of --etcd-join answers: %w", errors.Join(failures...))
}

func membersOf(client *http.Client, address string) ([]*membership.Member, error) {
	response, err := client.Get("https://" + address + "/members")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s: is this the peer address of a member?", response.Status)
	}
	var members []*membership.Member
	if err := json.NewDecoder(response.Body).Decode(&members); err != nil {
		return nil, fmt.Errorf("it answers no list of members: %w", err)
	}
	return members, nil
}

// reaches reports whether a member answers at its address.
func (p *Peering) reaches(address string) bool {
	client, err := p.client(reachTimeout)
	if err != nil {
		return false
	}
	_, err = membersOf(client, address)
	return err == nil
}
