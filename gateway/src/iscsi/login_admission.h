// The login of one connection as the gateway's throttle, its known networks and its counters see
// it.
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "iscsi/connection_ends.h"
#include "iscsi/login/login.h"
#include "iscsi/login/login_throttle.h"
#include "iscsi/login/parameters.h"
#include "iscsi/shard.h"

namespace sluice::iscsi {

class LoginAdmission {
 public:
  LoginAdmission(Shard& shard, const ConnectionEnds& ends) : shard_(shard), ends_(ends) {}

  // Whether a CHAP response of this initiator is evaluated now (Login::Setup::may_try).
  bool may_try(std::string_view initiator);
  // A login failed. Returns the delay of the answer; 0: it is sent immediately.
  Nanos delay_of_refusal(LoginStatus status, std::string_view initiator);
  // The login was accepted, or its session ended: its host will log in again.
  void record_success(const Parameters& parameters);
  // Counts the result of the login (counters.h). A connection has one: later calls do nothing.
  void count(size_t slot);

 private:
  enum class Response : uint8_t { kEvaluated, kThrottled };
  enum class Result : uint8_t { kPending, kCounted };

  LoginPeer peer_of(std::string_view initiator) const;

  Shard& shard_;
  const ConnectionEnds& ends_;
  Response response_ = Response::kEvaluated;  // the last CHAP response
  Result result_ = Result::kPending;
};

}  // namespace sluice::iscsi
