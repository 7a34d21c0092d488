// What the objects of a session have in common: its reactor, its connection, the outcome of the
// login, and its state.
//
// Threads: one reactor. Session owns it and changes its state; the other objects read it.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "iscsi/host_faults.h"
#include "iscsi/login/parameters.h"
#include "iscsi/shard.h"
#include "nexus/nexus.h"

namespace sluice::iscsi {

// What a session needs from its connection.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // Closes immediately after a violation that has no answer. `why` is one clause for the log.
  virtual void drop(std::string why) = 0;
  // Records a fault for the report to the control plane. `reason` is one clause.
  virtual void record_fault(HostFaultKind kind, std::string_view reason) = 0;
  // Closes when the outbox is empty.
  virtual void finish() = 0;
  // The outbox has output.
  virtual void output_ready() = 0;
};

class SessionContext {
 public:
  enum class State : uint8_t {
    kLoggedIn,
    kLogoutRequested,  // an Async Message has requested a logout
    kClosing,          // its commands are aborted; no request is executed any more
    kEnded,            // all its commands have completed, or are detached (lun::Command)
    kDrained,          // the backend has completed all its commands
  };

  SessionContext(Shard& its_shard, SessionHost& its_host, Parameters negotiated,
                 std::shared_ptr<lun::Nexus> its_nexus)
      : shard(its_shard),
        host(its_host),
        parameters(std::move(negotiated)),
        nexus(std::move(its_nexus)),
        started(its_shard.now) {}

  Shard& shard;
  SessionHost& host;
  Parameters parameters;                    // TextExchange changes a few of them
  const std::shared_ptr<lun::Nexus> nexus;  // null: a discovery session
  const Nanos started;                      // when the full feature phase began

  // Another gateway forwards the commands of its host.
  bool forwarding() const { return parameters.forwarded_by != 0; }
  State state() const { return state_; }
  bool closing() const { return state_ >= State::kClosing; }
  void enter(State to) {
    assert(state_ < to);
    state_ = to;
  }

 private:
  State state_ = State::kLoggedIn;
};

}  // namespace sluice::iscsi
