// A whole gateway without threads, sockets or clocks: exports, shards and connections of the real
// protocol core, controlled by the test. For tests of whole sessions and for the session fuzzer.
//
// Everything happens within run(): posted tasks, timers and I/O run until nothing is left.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/aio.h"
#include "base/buffer.h"
#include "base/reactors.h"
#include "iscsi/connection.h"
#include "iscsi/session_directory.h"
#include "iscsi/shard.h"
#include "nexus/exports.h"
#include "simulation/held_backend.h"

namespace sluice::simulation {

class SimulatedGateway;

// The transport of one connection: send() delivers bytes from the initiator; answers accumulate in
// received().
class SimulatedConnection final : public iscsi::Transport {
 public:
  SimulatedConnection(SimulatedGateway& gateway, unsigned reactor, uint64_t id,
                      iscsi::Connection::Ends ends);

  // Delivers bytes in pieces of at most `piece` bytes, as a network may.
  void send(ByteView bytes, size_t piece = SIZE_MAX);
  // As send(), but does not end the batch.
  void deliver(ByteView bytes, size_t piece = SIZE_MAX);
  // The initiator closes its end.
  void hang_up();
  // All bytes that the gateway sent since the last call.
  std::vector<uint8_t> take();
  // While off, the peer does not read: nothing leaves the outbox.
  void set_reading(bool on) { reading_ = on; }

  bool closed() const { return closed_; }
  // Whether it counts as unauthenticated.
  bool in_login() const { return in_login_; }
  bool ended() const { return core_->over(); }
  iscsi::Connection& core() { return *core_; }

  // --- iscsi::Transport
  void schedule_flush() override {}
  void close(bool discard) override;
  void authenticated() override { in_login_ = false; }
  void over() override {}

 private:
  friend class SimulatedGateway;
  bool flush();

  SimulatedGateway& gateway_;
  unsigned reactor_;
  bool reading_ = true;
  bool closed_ = false;
  bool discarded_ = false;
  bool in_login_ = true;
  std::vector<uint8_t> sent_;
  std::unique_ptr<iscsi::Connection> core_;
};

class SimulatedGateway final : public Reactors {
 public:
  static constexpr const char* kTarget = "iqn.2026-11.dev.sluice:simulated";
  static constexpr uint64_t kLunBytes = uint64_t{4} << 20;

  // Exports kTarget with LUN 0 (memory, held on demand) and LUN 1 (memory), open to anyone.
  explicit SimulatedGateway(iscsi::Settings settings = {}, unsigned reactors = 1);
  ~SimulatedGateway() override;

  SimulatedConnection& connect(unsigned reactor = 0, uint16_t tpgt = 1);
  // Another gateway connects to the forwarding port.
  SimulatedConnection& connect_gateway(unsigned reactor = 0);
  // Destroys an ended connection, as its carrier would.
  void forget(const SimulatedConnection& connection);
  // Runs until nothing is left to do.
  void run();
  // The duration of a batch: run() ends one, and its answers are sent at that time.
  void set_batch_time(Nanos span) { batch_time_ = span; }
  // Advances the time, with a tick every limits::kTick.
  void advance(Nanos span);

  lun::Exports& exports() { return exports_; }
  lun::Target& target() { return *target_; }
  HeldBackend& disk(unsigned lun = 0) { return *disks_[lun]; }
  std::shared_ptr<lun::Unit> unit(unsigned lun = 0) { return units_[lun]; }
  // The effect of a reload: the LUN now has the backend `spec`, or is removed. The simulation does
  // not refer to the old unit afterwards.
  void replace_lun(unsigned lun, const backend::Spec& spec);
  void remove_lun(unsigned lun);
  iscsi::Gateway& gateway() { return gateway_; }
  iscsi::Shard& shard(unsigned reactor = 0) { return reactors_[reactor]->shard; }
  BufferPool& buffers(unsigned reactor = 0) { return reactors_[reactor]->buffers; }

  // --- Reactors
  unsigned count() const override { return static_cast<unsigned>(reactors_.size()); }
  unsigned current() const override { return current_; }
  void post(unsigned reactor, std::function<void()> task) override {
    posted_.push_back({reactor, std::move(task)});
  }

 private:
  friend class SimulatedConnection;
  // Completes all operations in order; timeouts complete immediately.
  class Queue final : public Aio {
   public:
    void submit(AioOp& op) override { waiting_.push_back(&op); }
    bool run_one();

   private:
    std::deque<AioOp*> waiting_;
  };
  struct SimulatedReactor {
    Queue aio;
    BufferPool buffers{size_t{128} << 20};
    iscsi::Counters counters;
    iscsi::Shard shard;
  };
  struct Posted {
    unsigned reactor;
    std::function<void()> task;
  };
  void add_disk(unsigned lun, const backend::Spec& spec);
  void show_luns();

  lun::Exports exports_;
  std::shared_ptr<lun::Target> target_;
  std::vector<HeldBackend*> disks_;
  std::vector<std::shared_ptr<lun::Unit>> units_;
  iscsi::Gateway gateway_;
  std::unique_ptr<iscsi::SessionDirectory> directory_;
  std::vector<std::unique_ptr<SimulatedReactor>> reactors_;
  std::deque<Posted> posted_;
  std::vector<std::unique_ptr<SimulatedConnection>> connections_;
  unsigned current_ = 0;
  uint64_t next_id_ = 1;
  uint8_t next_random_ = 1;
  Nanos now_ = kSecond;
  Nanos batch_time_ = 0;
};

}  // namespace sluice::simulation
