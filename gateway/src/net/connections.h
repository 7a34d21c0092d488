// The connections of a reactor, and what it does with them at the end of a batch.
//
// Threads: count() any; all other functions the reactor's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "net/connection_context.h"
#include "net/tcp_connection.h"

namespace sluice::net {

class Connections {
 public:
  unsigned count() const { return count_.load(std::memory_order_relaxed); }

  TcpConnection& add(std::unique_ptr<TcpConnection> connection);
  // An identifier that no other connection of this reactor has or had.
  uint64_t next_id() { return next_id_++; }
  bool empty() const { return all_.empty(); }
  void for_each(const std::function<void(TcpConnection&)>& f);
  void tick();
  // Closes the present connections. A host may connect again immediately; its new connection stays
  // open.
  void abandon_all();
  void clear() { all_.clear(); }

  // Where connections register themselves.
  DeferredConnections& deferred() { return deferred_; }
  // One gathered send per connection that has output.
  void flush();
  // The receive ring has buffers.
  void feed();
  void destroy_finished();

 private:
  void publish_count();

  std::vector<std::unique_ptr<TcpConnection>> all_;
  DeferredConnections deferred_;
  uint64_t next_id_ = 1;
  std::atomic<unsigned> count_{0};
};

}  // namespace sluice::net
