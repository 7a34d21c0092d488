// Which gateways may log in through the forwarding port, with which keys, and the identity and the
// keys of this gateway. Set at run time by the control plane; read by logins and by forward/.
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

// A key between gateways. The id is the CHAP user name of both sides.
struct ForwardingKey {
  std::string id;
  std::string secret;  // never logged
};

// Another gateway that the control plane lists as a peer of this one.
struct KnownPeer {
  uint16_t number = 0;
  std::string incarnation;
  std::vector<ForwardingKey> accepted;  // the peer proves itself with them; newest first
  std::vector<ForwardingKey> own;       // this gateway proves itself with them; newest first
};

class ForwardingAccess {
 public:
  struct Identity {
    uint16_t number = 0;  // 0: not told yet, nobody comes in
    std::string incarnation;
  };
  void set_identity(Identity identity);
  Identity identity() const;

  // Keys that every gateway of the cluster shares, newest first: only while the cluster has a
  // gateway without pairwise keys. Beyond limits::kMaxForwardingKeys the oldest are left out.
  void set_keys(const std::vector<ForwardingKey>& keys);
  // Replaces the peers, at most limits::kMaxPeers. Per peer and direction at most
  // limits::kMaxForwardingKeys keys count.
  void set_peers(const std::vector<KnownPeer>& peers);
  bool knows(uint16_t number, const std::string& incarnation) const;
  // Whether another incarnation of that gateway is a peer.
  bool replaced(uint16_t number, const std::string& incarnation) const;
  // Numbers of gateways that were peers, as an incarnation that no longer is one, since the last
  // call.
  std::vector<uint16_t> take_revoked();

  // What proves that peer to this gateway; empty: it is no peer, or no key is known. Per key, a
  // secret for each direction, made from the key's (RFC 7143 §9.2.1 wants two). `expected` proves
  // the forwarder, `mutual` the owner.
  std::vector<ChapPair> credentials_of(uint16_t number, const std::string& incarnation) const;
  // What proves this gateway to that peer, in the order of preference.
  std::vector<ChapPair> credentials_for(uint16_t number, const std::string& incarnation) const;

  // A gateway that is fenced, by number and incarnation, stays fenced (DESIGN R4) until the control
  // plane says otherwise: one that was only cut off is the same client when it returns, where its
  // volumes' locks are the fence (R2, local). The oldest is forgotten beyond
  // limits::kMaxFencedPeers. True: it was not before.
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
