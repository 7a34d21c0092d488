// The reaction of a reactor to its own stall (DESIGN R6): hosts behind its sockets may have
// repeated commands on another path, and old ones must not overtake those.
#include <cerrno>

#include "base/log.h"
#include "net/reactor.h"
#include "net/tcp_connection.h"

namespace sluice::net {
namespace {

bool changes_data(AioOp::Kind kind) {
  return kind == AioOp::Kind::kWritev || kind == AioOp::Kind::kFallocate ||
         kind == AioOp::Kind::kDiscard;
}

}  // namespace

// Submits the queued entries, so that the ring has room. The reactor may have stood still since it
// checked for that at the begin of this turn.
void Reactor::hand_over() {
  if (guard_.late(setup_.clock())) withdraw();
  require_submitted(io_uring_submit(&ring_));
}

// Takes back every change of data that lies in the ring and was not handed over.
void Reactor::withdraw() {
  io_uring_sq& queue = ring_.sq;
  for (unsigned at = *queue.khead; at != queue.sqe_tail; ++at) {
    io_uring_sqe* e = &queue.sqes[at & queue.ring_mask];
    if (kind_of(e->user_data) != Kind::kAio) continue;
    auto* op = static_cast<AioOp*>(owner_of(e->user_data));
    if (!changes_data(op->kind)) continue;
    io_uring_prep_nop(e);
    tag(e, nullptr, Kind::kIgnore);
    withdrawn_.push_back(op);
  }
}

void Reactor::on_stall(Nanos now) {
  log::error("reactor stood still, its connections are closed unread",
             {{"reactor", setup_.index},
              {"milliseconds", guard_.behind(now) / kMillisecond},
              {"connections", connections_.size()}});
  // First, so that cancelled operations end as aborted and cause no further work. A host that
  // learns of its closed connection may connect again immediately: that connection is not affected.
  std::vector<TcpConnection*> before;
  before.reserve(connections_.size());
  for (const auto& connection : connections_) before.push_back(connection.get());
  for (TcpConnection* connection : before) connection->abandon();
  withdraw();
  std::vector<AioOp*> ops;
  ops.swap(withdrawn_);
  for (AioOp* op : ops) {
    --operations_;
    op->done(*op, -ECANCELED);
  }
  guard_.start_over(now);
}

}  // namespace sluice::net
