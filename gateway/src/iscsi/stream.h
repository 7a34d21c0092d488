// The two sides of a connection: a Transport carries bytes (a socket of net/, or a buffer of a
// test), and a ProtocolEndpoint, of the target or of the initiator, speaks iSCSI over it.
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <string>

#include "base/buffer.h"
#include "base/clock.h"
#include "iscsi/outbox.h"

namespace sluice::iscsi {

// What an endpoint needs from the transport below it.
class Transport {
 public:
  virtual ~Transport() = default;
  // The outbox is ready(). The transport sends it after the current batch of input.
  virtual void schedule_flush() = 0;
  // The endpoint needs no more input. With `discard` the connection closes immediately and drops
  // queued output; else it closes when the outbox is empty.
  virtual void close(bool discard) = 0;
  // The peer has authenticated. Its nexus may still wait for the end of an earlier session. Not
  // called for a discovery session without authentication.
  virtual void authenticated() = 0;
  // The unauthenticated peer has sent a complete PDU.
  virtual void progressed() {}
  // The time limit of a login: less than `configured` while too many peers are logging in.
  virtual Nanos login_timeout(Nanos configured) const { return configured; }
  // ProtocolEndpoint::over() may have become true.
  virtual void over() = 0;
};

// What a transport needs from the endpoint above it.
class ProtocolEndpoint {
 public:
  virtual ~ProtocolEndpoint() = default;
  // Bytes from the peer, in order. The endpoint consumes all of them.
  virtual void receive(Slice bytes) = 0;
  // The transport has sent `bytes`; the endpoint may reuse their memory.
  virtual void on_sent(size_t bytes) = 0;
  // The peer closed, the socket failed, or the transport closed it.
  virtual void on_closed() = 0;
  virtual void tick() = 0;
  // The transport ends the connection because of the peer's behavior. `why` is one clause for the
  // log.
  virtual void drop(std::string why) = 0;
  virtual Outbox& outbox() = 0;
  // The endpoint no longer needs the transport, which may be destroyed.
  virtual bool over() const = 0;
};

}  // namespace sluice::iscsi
