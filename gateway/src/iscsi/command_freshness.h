// Until when a command of a session may be submitted to the backend (DESIGN R6): afterwards its
// host may have repeated it on another path.
//
// Threads: one reactor.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"
#include "base/safety_mutation.h"
#include "iscsi/peer_liveness.h"
#include "iscsi/ping_tokens.h"
#include "iscsi/session_context.h"
#include "iscsi/session_tasks.h"

namespace sluice::iscsi {

class CommandFreshness {
 public:
  CommandFreshness(const SessionContext& session, const PeerLiveness& liveness,
                   const PingTokens& tokens)
      : forwarding_(session.forwarding()), liveness_(liveness), tokens_(tokens) {}

  // Command::fresh_until of a new command. `token`: the token that a forwarder sent with it.
  Nanos of_command(uint64_t token) const {
    if (forwarding_) return mutation_disables(Guard::kToken) ? 0 : tokens_.fresh_until(token);
    if (!liveness_.answers_pings() || mutation_disables(Guard::kAge)) return 0;
    return liveness_.confirmed_until() + limits::kDiscardSilence;
  }

  // A command that waits, for data or for a range, is not stale while its host is known to receive
  // from us. A forwarded one is not stale between its steps if it began while its token was valid
  // (gateway/decisions/forwarding.md).
  void extend(const SessionTasks& tasks) const {
    if (!liveness_.answers_pings() || tasks.in_use() == 0 || mutation_disables(Guard::kAge)) return;
    const Nanos until = liveness_.confirmed_until() + limits::kDiscardSilence;
    tasks.for_each([until, this](Task* task) {
      if (!forwarding_ || task->command.submitted) task->command.fresh_until = until;
    });
  }

 private:
  const bool forwarding_;
  const PeerLiveness& liveness_;
  const PingTokens& tokens_;
};

}  // namespace sluice::iscsi
