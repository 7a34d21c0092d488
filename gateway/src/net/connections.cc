#include "net/connections.h"

#include <utility>

namespace sluice::net {

TcpConnection& Connections::add(std::unique_ptr<TcpConnection> connection) {
  all_.push_back(std::move(connection));
  publish_count();
  return *all_.back();
}

void Connections::publish_count() {
  count_.store(static_cast<unsigned>(all_.size()), std::memory_order_relaxed);
}

void Connections::for_each(const std::function<void(TcpConnection&)>& f) {
  for (size_t i = 0; i < all_.size(); ++i) f(*all_[i]);
}

void Connections::tick() {
  // By index: a tick may end connections, which only schedules their deletion.
  for (size_t i = 0; i < all_.size(); ++i) all_[i]->tick();
}

void Connections::abandon_all() {
  std::vector<TcpConnection*> before;
  before.reserve(all_.size());
  for (const auto& connection : all_) before.push_back(connection.get());
  for (TcpConnection* connection : before) connection->abandon();
}

void Connections::flush() {
  // By index: a flush may schedule another.
  for (size_t i = 0; i < deferred_.flush.size(); ++i) deferred_.flush[i]->flush();
  deferred_.flush.clear();
}

void Connections::feed() {
  if (deferred_.wait_for_buffers.empty()) return;
  std::vector<TcpConnection*> fed;
  fed.swap(deferred_.wait_for_buffers);
  for (TcpConnection* c : fed) c->on_buffers();
}

void Connections::destroy_finished() {
  if (deferred_.destroy.empty()) return;
  for (TcpConnection* gone : deferred_.destroy) {
    std::erase_if(all_, [&](const auto& c) { return c.get() == gone; });
  }
  deferred_.destroy.clear();
  publish_count();
}

}  // namespace sluice::net
