// The seam between a byte stream and what speaks on it: net/ carries sockets, tests carry bytes.
// One end of the protocol, target or initiator, is a StreamEnd; its carrier is its Wire.
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <string>

#include "base/buffer.h"
#include "base/clock.h"
#include "iscsi/outbox.h"

namespace sluice::iscsi {

// What a connection asks of its carrier.
class Wire {
 public:
  virtual ~Wire() = default;
  // The outbox is ready(): send it when the present batch of input has been handled.
  virtual void schedule_flush() = 0;
  // No more input is wanted. `discard`: close at once, whatever waits in the outbox is dropped;
  // else close once it is empty.
  virtual void close(bool discard) = 0;
  // The peer's login has been accepted; what may still follow is a wait for its nexus. Not called
  // for a discovery session that has proven nothing.
  virtual void authenticated() = 0;
  // The peer, not authenticated yet, has sent a whole PDU.
  virtual void progressed() {}
  // How long a login may take now: less than configured while too many peers are in theirs.
  virtual Nanos login_timeout(Nanos configured) const { return configured; }
  // over() may have become true.
  virtual void over() = 0;
};

// What a carrier asks of it.
class StreamEnd {
 public:
  virtual ~StreamEnd() = default;
  // Bytes from the peer, in order; all of them are taken.
  virtual void receive(Slice bytes) = 0;
  // The carrier sent `bytes`: memory came back.
  virtual void on_sent(size_t bytes) = 0;
  // The peer closed or the socket failed, or the carrier closed it.
  virtual void on_closed() = 0;
  virtual void tick() = 0;
  // The carrier finds the peer impossible; `why` is one clause for the log.
  virtual void drop(std::string why) = 0;
  virtual Outbox& outbox() = 0;
  // The carrier may let go of it.
  virtual bool over() const = 0;
};

}  // namespace sluice::iscsi
