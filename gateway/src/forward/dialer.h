// Connections to other gateways as this room sees them; net/ makes them of sockets, tests of bytes.
#pragma once

#include <memory>
#include <string>

#include "iscsi/stream.h"

namespace sluice::forward {

// The near end of a connection that is to be made.
class Caller : public iscsi::ProtocolEndpoint {
 public:
  // It is made: what is in the outbox may be sent. `wire` is good until on_closed() or over().
  virtual void connected(iscsi::Transport& wire) = 0;
  // It can't be made, and nothing else will be called. `refused`: its machine says that nobody
  // listens there; else nothing was heard within limits::kDialBound.
  virtual void unreachable(bool refused) = 0;
};

// Of one reactor. Sockets have SO_LINGER {1, 0} from their creation (DESIGN R6): what was not sent
// when they are closed is never sent.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // `address`: "ip:port" or "[ip6]:port". One of the Caller's two follows, never inside the call.
  virtual void dial(const std::string& address, std::shared_ptr<Caller> caller) = 0;
};

}  // namespace sluice::forward
