// The claim of one connection to its I_T nexus in the session directory: which logins it refuses,
// the claim itself, and its release.
//
// The connection releases the claim when its session is drained. The destructor does not: when the
// process ends, the directory may be gone before its connections.
//
// Threads: the connection's reactor.
#pragma once

#include <cstdint>
#include <optional>

#include "iscsi/login/login_setup.h"
#include "iscsi/session_directory.h"

namespace sluice::iscsi {

class NexusClaim {
 public:
  struct Request {
    SessionKey key = {};
    NexusIncarnation nexus = {};  // of a forwarded nexus
    uint16_t tsih = 0;            // of the login request; 0: a new session
    uint16_t cid = 0;
  };
  struct Refusal {
    LoginStatus status;
    const char* reason;
  };

  // `directory` may be null in a connection that never claims.
  NexusClaim(SessionDirectory* directory, ConnectionHandle connection)
      : directory_(directory), connection_(connection) {}
  NexusClaim(const NexusClaim&) = delete;

  // Why this login cannot have its nexus; nullopt: it may claim it.
  std::optional<Refusal> refusal(const Request& request) const;
  // Claims the nexus. The directory calls `granted` of its callbacks later.
  void take(Request request);
  // Releases a claim that waits, that was just granted, or that a session has. Without a claim,
  // does nothing.
  void release();

 private:
  SessionDirectory* directory_;
  ConnectionHandle connection_;
  std::optional<SessionKey> claimed_;
};

}  // namespace sluice::iscsi
