// Connections to other gateways: the interface. net/ implements it with sockets, tests with
// buffers.
#pragma once

#include <memory>
#include <string>

#include "iscsi/stream.h"

namespace sluice::forward {

// This gateway's end of a connection that is being established.
class Caller : public iscsi::ProtocolEndpoint {
 public:
  // The connection is established: output in the outbox may be sent. `wire` is valid until
  // on_closed() or over().
  virtual void connected(iscsi::Transport& wire) = 0;
  // The connection failed; no other function will be called. `refused`: the machine answered that
  // there is no listener; else there was no answer within limits::kDialBound.
  virtual void unreachable(bool refused) = 0;
};

// One per reactor. Sockets have SO_LINGER {1, 0} from their creation (DESIGN R6): output that was
// not sent before the close is never sent.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // `address`: "ip:port" or "[ip6]:port". Calls connected() or unreachable() later, never within
  // the call.
  virtual void dial(const std::string& address, std::shared_ptr<Caller> caller) = 0;
};

}  // namespace sluice::forward
