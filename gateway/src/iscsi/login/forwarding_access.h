// Which gateways may log in through the forwarding port and with which keys, and the identity and
// keys of this gateway. The control plane sets it at run time; logins and forward/ read it.
// gateway/decisions/forwarding.md gives the reasons.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "iscsi/login/chap.h"

namespace sluice::iscsi {

// A key between gateways. The id is the CHAP user name in both directions.
struct ForwardingKey {
  std::string id;
  std::string secret;  // never logged
};

// Another gateway that the control plane lists as a peer of this one.
struct KnownPeer {
  uint16_t number = 0;
  std::string incarnation;
  std::vector<ForwardingKey> accepted;  // the peer authenticates itself with them; newest first
  std::vector<ForwardingKey> own;       // this gateway authenticates itself with them; newest first
};

class ForwardingAccess {
 public:
  struct Identity {
    uint16_t number = 0;  // 0: not set yet, every login is refused
    std::string incarnation;
  };
  void set_identity(Identity identity);
  Identity identity() const;

  // Keys that all gateways of the cluster share, newest first; only while some gateway lacks
  // pairwise keys. Beyond limits::kMaxForwardingKeys the oldest are omitted.
  void set_keys(const std::vector<ForwardingKey>& keys);
  // Replaces the peers, at most limits::kMaxPeers. At most limits::kMaxForwardingKeys keys are used
  // per peer and direction.
  void set_peers(const std::vector<KnownPeer>& peers);
  bool knows(uint16_t number, const std::string& incarnation) const;
  // Whether the gateway is a peer with another incarnation.
  bool replaced(uint16_t number, const std::string& incarnation) const;
  // Numbers of gateways that were removed as peers, or changed their incarnation, since the last
  // call.
  std::vector<uint16_t> take_revoked();

  // The credentials that authenticate that peer to this gateway; empty: it is not a peer, or no key
  // is known. For each key, one secret per direction is derived, because RFC 7143 §9.2.1 requires
  // two. `expected` authenticates the forwarder, `mutual` the owner.
  std::vector<ChapPair> credentials_of(uint16_t number, const std::string& incarnation) const;
  // The credentials that authenticate this gateway to that peer, in order of preference.
  std::vector<ChapPair> credentials_for(uint16_t number, const std::string& incarnation) const;

  // Fences a gateway by number and incarnation (DESIGN R4) until the control plane lifts it: a
  // gateway that was only partitioned is the same client when it returns, if locks fence its
  // volumes (R2, local). Beyond limits::kMaxFencedPeers the oldest entry is dropped. True: it was
  // not fenced before.
  bool fence(uint16_t number, const std::string& incarnation);
  void lift(uint16_t number, const std::string& incarnation);
  bool fenced(uint16_t number, const std::string& incarnation) const;

 private:
  struct Entry {
    uint16_t number = 0;
    std::string incarnation;
    std::vector<ChapPair> accepted;
    std::vector<ChapPair> own;
  };
  const Entry* find(uint16_t number, const std::string& incarnation) const;
  std::vector<ChapPair> with_shared(std::vector<ChapPair> pairs) const;

  mutable std::mutex mutex_;
  Identity identity_;
  std::vector<ChapPair> shared_;
  std::vector<Entry> peers_;
  std::vector<uint16_t> revoked_;
  std::vector<std::pair<uint16_t, std::string>> fenced_;
};

}  // namespace sluice::iscsi
