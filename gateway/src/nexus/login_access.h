// Decides which authentication a login needs and what it may use then: one function for normal and
// discovery sessions.
//
// The required authentication depends on the initiator's name alone, not on the target. An unknown
// target and a forbidden one are refused with the same status after the same authentication. An
// unknown initiator is treated as a known one with a wrong secret
// (gateway/decisions/session-and-login.md).
//
// Threads: any.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "nexus/exports.h"

namespace sluice::lun {

struct LoginAccess {
  // The required authentication, and the rights after it.
  HostAccess host;
  // The target of an admitted normal session; null otherwise.
  std::shared_ptr<Target> target;
  // False: the login is refused after host.chap was verified, or immediately if host.chap is empty.
  bool admitted = false;
  // False: CHAP is required, but no secret is valid.
  bool provable = true;
  // The cause of a refusal; for the log only.
  std::string why;
};

// `target`: normalized name of the target of a normal session; nullopt: a discovery session.
LoginAccess login_access(const Exports& exports, std::string_view initiator,
                         std::optional<std::string_view> target);

}  // namespace sluice::lun
