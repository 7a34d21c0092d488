#include "simulation/simulated_gateway.h"

#include <algorithm>
#include <cstdlib>

#include "base/limits.h"
#include "unit/unit.h"

namespace sluice::simulation {

SimulatedConnection::SimulatedConnection(SimulatedGateway& gateway, unsigned reactor, uint64_t id,
                                         iscsi::Connection::Ends ends)
    : gateway_(gateway),
      reactor_(reactor),
      core_(std::make_unique<iscsi::Connection>(gateway.shard(reactor), *this, id,
                                                std::move(ends))) {}

void SimulatedConnection::send(ByteView bytes, size_t piece) {
  deliver(bytes, piece);
  gateway_.run();
}

void SimulatedConnection::deliver(ByteView bytes, size_t piece) {
  BufferPool& pool = gateway_.buffers(reactor_);
  gateway_.current_ = reactor_;
  while (!bytes.empty() && !closed_) {
    const size_t n = std::min({bytes.size(), piece, size_t{limits::kReceiveBufferSize}});
    BufferRef buffer = pool.allocate(static_cast<uint32_t>(n));
    if (!buffer) break;
    std::memcpy(buffer.data(), bytes.data(), n);
    uint8_t* data = buffer.data();
    core_->receive({std::move(buffer), data, static_cast<uint32_t>(n)});
    bytes = bytes.subspan(n);
  }
}

void SimulatedConnection::hang_up() {
  closed_ = true;
  core_->outbox().discard();
  gateway_.current_ = reactor_;
  core_->on_closed();
  gateway_.run();
}

void SimulatedConnection::close(bool discard) {
  closed_ = true;
  if (!discard) return;
  discarded_ = true;
  core_->outbox().discard();
}

bool SimulatedConnection::flush() {
  iscsi::Outbox& out = core_->outbox();
  if (discarded_ || !reading_ || !out.ready()) return false;
  size_t n = 0;
  for (const iovec& v : out.take(limits::kMaxSendVectors)) {
    const auto* p = static_cast<const uint8_t*>(v.iov_base);
    sent_.insert(sent_.end(), p, p + v.iov_len);
    n += v.iov_len;
  }
  out.sent(n);
  core_->on_sent(n);
  return true;
}

std::vector<uint8_t> SimulatedConnection::take() { return std::exchange(sent_, {}); }

bool SimulatedGateway::Queue::run_one() {
  if (waiting_.empty()) return false;
  AioOp* op = waiting_.front();
  waiting_.pop_front();
  // Only timeouts reach this queue: memory LUNs answer at once.
  op->done(*op, op->kind == AioOp::Kind::kTimeout ? 0 : -EOPNOTSUPP);
  return true;
}

SimulatedGateway::SimulatedGateway(iscsi::Settings settings, unsigned reactors) {
  gateway_.settings = settings;
  gateway_.exports = &exports_;
  gateway_.random = [this](uint8_t* out, size_t n) {
    for (size_t i = 0; i < n; ++i) out[i] = next_random_++;
  };
  const auto find = [this](iscsi::ConnectionHandle h) -> iscsi::Connection* {
    auto& live = reactors_[h.reactor]->shard.connections;
    const auto it = live.find(h.id);
    return it == live.end() ? nullptr : it->second;
  };
  directory_ = std::make_unique<iscsi::SessionDirectory>(
      *this, iscsi::SessionDirectory::Callbacks{[find](iscsi::ConnectionHandle h) {
                                                  if (iscsi::Connection* c = find(h))
                                                    c->end_session();
                                                },
                                                [find](iscsi::ConnectionHandle h, uint16_t tsih) {
                                                  if (iscsi::Connection* c = find(h))
                                                    c->granted(tsih);
                                                },
                                                [find](iscsi::ConnectionHandle h) {
                                                  if (iscsi::Connection* c = find(h))
                                                    c->review_access();
                                                }});
  gateway_.directory = directory_.get();
  for (unsigned i = 0; i < reactors; ++i) {
    auto reactor = std::make_unique<SimulatedReactor>();
    reactor->shard.gateway = &gateway_;
    reactor->shard.counters = &reactor->counters;
    reactor->shard.now = now_;
    reactor->shard.context = {&reactor->aio,       &reactor->buffers,         this,    i,
                              &reactor->shard.now, &reactor->shard.latencies, nullptr, nullptr};
    reactors_.push_back(std::move(reactor));
  }
  target_ = std::make_shared<lun::Target>(kTarget, "simulated", uint16_t{1});
  backend::Spec spec;
  spec.kind = "memory";
  spec.size = kLunBytes;
  disks_.resize(2);
  units_.resize(2);
  add_disk(0, spec);
  add_disk(1, spec);
  target_->set_hosts({lun::HostAccess{}});
  show_luns();
  exports_.add(target_);
  exports_.set_portals({{"127.0.0.1:3260", 1, 1}});
}

void SimulatedGateway::add_disk(unsigned lun, const backend::Spec& spec) {
  auto opened = backend::open(spec);
  if (!opened) std::abort();
  auto held = std::make_unique<HeldBackend>(std::move(opened).value());
  disks_[lun] = held.get();
  lun::UnitIdentity identity;
  identity.uuid.fill(static_cast<uint8_t>(0xa0 + lun));
  identity.serial = "SIM" + std::to_string(lun);
  units_[lun] = std::make_shared<lun::Unit>(identity, std::move(held), count(), nullptr);
}

void SimulatedGateway::show_luns() {
  std::vector<lun::Target::LunEntry> luns;
  for (unsigned i = 0; i < units_.size(); ++i) {
    if (units_[i]) luns.push_back({i, units_[i]});
  }
  target_->set_luns(std::move(luns), *this);
  run();
}

void SimulatedGateway::replace_lun(unsigned lun, const backend::Spec& spec) {
  add_disk(lun, spec);
  show_luns();
}

void SimulatedGateway::remove_lun(unsigned lun) {
  disks_[lun] = nullptr;
  units_[lun]->raise_gate(lun::Unit::kRemoved);
  units_[lun] = nullptr;
  show_luns();
}

SimulatedGateway::~SimulatedGateway() {
  for (HeldBackend* disk : disks_) {
    if (!disk) continue;
    disk->hold(false);
    disk->release_all();
  }
  for (auto& c : connections_) {
    if (!c->ended()) c->hang_up();
  }
  run();
  connections_.clear();
}

SimulatedConnection& SimulatedGateway::connect(unsigned reactor, uint16_t tpgt) {
  const uint64_t id = next_id_++;
  iscsi::Connection::Ends ends{
      tpgt, tpgt, "127.0.0.1:3260", "127.0.0.1:" + std::to_string(40000 + id), {}, false};
  connections_.push_back(
      std::make_unique<SimulatedConnection>(*this, reactor, id, std::move(ends)));
  return *connections_.back();
}

SimulatedConnection& SimulatedGateway::connect_gateway(unsigned reactor) {
  const uint64_t id = next_id_++;
  iscsi::Connection::Ends ends;
  ends.local_address = "127.0.0.1:3261";
  ends.peer_address = "127.0.0.1:" + std::to_string(40000 + id);
  ends.forwarding = true;
  connections_.push_back(
      std::make_unique<SimulatedConnection>(*this, reactor, id, std::move(ends)));
  return *connections_.back();
}

void SimulatedGateway::forget(const SimulatedConnection& connection) {
  std::erase_if(connections_, [&](const auto& c) { return c.get() == &connection; });
}

void SimulatedGateway::run() {
  bool busy = true;
  while (busy) {
    busy = false;
    while (!posted_.empty()) {
      const Posted next = std::move(posted_.front());
      posted_.pop_front();
      current_ = next.reactor;
      next.task();
      busy = true;
    }
    for (unsigned i = 0; i < reactors_.size(); ++i) {
      current_ = i;
      while (reactors_[i]->aio.run_one()) busy = true;
    }
    for (size_t i = 0; i < connections_.size(); ++i) {
      current_ = connections_[i]->reactor_;
      while (connections_[i]->flush()) busy = true;
    }
  }
  for (auto& reactor : reactors_) reactor->shard.end_batch(reactor->shard.now + batch_time_);
}

void SimulatedGateway::advance(Nanos span) {
  const Nanos until = now_ + span;
  while (now_ < until) {
    now_ = std::min(until, now_ + limits::kTick);
    for (auto& reactor : reactors_) reactor->shard.now = now_;
    for (size_t i = 0; i < connections_.size(); ++i) {
      current_ = connections_[i]->reactor_;
      if (!connections_[i]->ended()) connections_[i]->core().tick();
    }
    run();
  }
}

}  // namespace sluice::simulation
