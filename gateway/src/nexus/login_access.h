// Decides what a login must prove and what it may use then: one function for normal and discovery
// sessions.
//
// What is asked depends on the initiator's name alone, not on the target: an unknown target and a
// forbidden one are refused alike, with the same status and after the same proof. An unknown
// initiator is treated as a known one with a wrong secret
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
  // What the initiator must prove, and what it may do after that.
  HostAccess host;
  // The target of a normal session that is admitted; null otherwise.
  std::shared_ptr<Target> target;
  // False: the login is refused once host.chap is proven, or at once where that is empty.
  bool admitted = false;
  // False: CHAP is asked for, and nothing proves it.
  bool provable = true;
  // The cause of a refusal, for the log alone.
  std::string why;
};

// `target`: normalised name of the target of a normal session; nullopt: a discovery session.
LoginAccess login_access(const Exports& exports, std::string_view initiator,
                         std::optional<std::string_view> target);

}  // namespace sluice::lun
