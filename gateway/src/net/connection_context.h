// What a reactor provides to its TCP connections. One object per reactor, which outlives them.
#pragma once

#include <vector>

#include "iscsi/shard.h"
#include "net/receive_ring.h"
#include "net/submission_queue.h"

namespace sluice::net {

class TcpConnection;

// Connections, by what their reactor does with them at the end of the batch.
struct DeferredConnections {
  std::vector<TcpConnection*> flush;             // TcpConnection::flush()
  std::vector<TcpConnection*> wait_for_buffers;  // on_buffers(), once the ring has buffers
  std::vector<TcpConnection*> destroy;
};

struct ConnectionContext {
  SubmissionQueue& submissions;
  ReceiveRing& receive_ring;
  iscsi::Shard& shard;
  DeferredConnections& deferred;
};

}  // namespace sluice::net
