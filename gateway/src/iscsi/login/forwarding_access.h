// Who may come in through the forwarding port, and who we are to them. Set at run time by the
// control plane; read by logins and by forward/.
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

// What gateways of a cluster prove themselves with. The id is the CHAP user name of both sides.
struct ForwardingKey {
  std::string id;
  std::string secret;  // never logged
};

class ForwardingAccess {
 public:
  struct Identity {
    uint16_t number = 0;  // 0: not told yet, nobody comes in
    std::string incarnation;
  };
  void set_identity(Identity identity);
  Identity identity() const;

  // Newest first: we prove ourselves with the first and accept all, so that keys can be changed
  // one gateway at a time. Beyond limits::kMaxForwardingKeys the oldest are left out.
  void set_keys(const std::vector<ForwardingKey>& keys);
  // Per key, a secret for each direction, made from the key's (RFC 7143 §9.2.1 wants two).
  // `expected` proves the forwarder, `mutual` the owner.
  std::vector<ChapPair> credentials() const;

  // A gateway that is fenced, by number and incarnation, stays fenced (DESIGN R4) until the control
  // plane says otherwise: one that was only cut off is the same client when it returns, where its
  // volumes' locks are the fence (R2, local). The oldest is forgotten beyond
  // limits::kMaxFencedPeers. True: it was not before.
  bool fence(uint16_t number, const std::string& incarnation);
  void lift(uint16_t number, const std::string& incarnation);
  bool fenced(uint16_t number, const std::string& incarnation) const;

 private:
  mutable std::mutex mutex_;
  Identity identity_;
  std::vector<ChapPair> credentials_;
  std::vector<std::pair<uint16_t, std::string>> fenced_;
};

}  // namespace sluice::iscsi
