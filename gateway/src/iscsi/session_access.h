// Whether the initiator of a session may use its target: checked when the session opens, and after
// each change of targets, hosts and peers.
//
// Threads: one reactor.
#pragma once

#include <memory>
#include <utility>

#include "iscsi/forwarding_wire.h"
#include "iscsi/login/login.h"
#include "iscsi/login/parameters.h"
#include "iscsi/shard.h"
#include "nexus/target.h"

namespace sluice::iscsi {

class SessionAccess {
 public:
  // `forwarding`: the session came in through a portal for gateways.
  SessionAccess(Gateway& gateway, bool forwarding) : gateway_(gateway), forwarding_(forwarding) {}

  // The login succeeded. `target`: null for discovery.
  void set(Origin origin, const std::shared_ptr<lun::Target>& target) {
    origin_ = std::move(origin);
    target_ = target;
  }
  // Of a forwarding session.
  const Origin& origin() const { return origin_; }

  struct Verdict {
    LoginStatus status = LoginStatus::kSuccess;  // of a login that is refused for it
    const char* why = "";
    bool read_only = false;  // if admitted: the host may only read
    bool admitted() const { return status == LoginStatus::kSuccess; }
  };
  Verdict check(const Parameters& parameters) const;
  // Of a forwarding session: whether its gateway is fenced, is a peer with this incarnation, was
  // replaced by another process.
  bool fenced() const;
  bool from_peer() const;
  bool replaced() const;

 private:
  Verdict check_forwarded(const Parameters& parameters, lun::Target& target) const;
  Verdict check_host(const Parameters& parameters, lun::Target& target) const;

  Gateway& gateway_;
  const bool forwarding_;
  Origin origin_;
  std::weak_ptr<lun::Target> target_;
};

}  // namespace sluice::iscsi
