// Hosts on several threads read and write while a control thread lets the unit come and go:
// released, fenced, forwarded, served again. The thread sanitizer watches; the test ends only if
// every command ended.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "commands/handler.h"
#include "nexus/exports.h"
#include "nexus/forwarding.h"
#include "nexus/nexus.h"
#include "nexus/pipeline.h"
#include "unit/closing.h"
#include "unit/latency_log.h"
#include "unit/ownership.h"
#include "unit/reservations/reservations.h"
#include "unit/statistics.h"
#include "unit/test_threads.h"

namespace sluice::lun {
namespace {

constexpr unsigned kThreads = 3;
constexpr unsigned kCommands = 20000;  // per nexus
constexpr unsigned kDepth = 8;
constexpr uint64_t kSize = 1 << 20;
// READ, WRITE, SYNCHRONIZE CACHE (10)
constexpr std::array<uint8_t, 5> kOpcodes{0x28, 0x28, 0x2a, 0x2a, 0x35};

class NoAio : public Aio {
 public:
  void submit(AioOp&) override { std::abort(); }
};

// Completes every other request later, from a task of the reactor that sent it. Anything after
// close() is a command that outlived its ownership.
class WatchedBackend : public backend::Backend {
 public:
  WatchedBackend(ThreadedReactors& reactors, std::atomic<unsigned>& late)
      : reactors_(reactors), late_(late) {}
  ~WatchedBackend() override {
    if (in_flight_ != 0) ++late_;
  }
  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return kSize; }
  bool submit(backend::Io& io, Aio& aio) override {
    if (closed_) ++late_;
    io.result = io.op == backend::Op::kFlush ? 0 : static_cast<int64_t>(io.length);
    if (++count_ % 2 == 0) return true;
    ++in_flight_;
    reactors_.post(static_cast<ReactorAio&>(aio).reactor, [this, &io] {
      if (closed_) ++late_;
      --in_flight_;
      io.done(io);
    });
    return false;
  }
  bool write_cache() const override { return true; }
  Result<void> set_write_cache(bool) override { return {}; }
  Result<backend::Extent> allocation(uint64_t, uint64_t limit) const override {
    return backend::Extent{limit, true};
  }
  Result<void> resize(uint64_t) override { return {}; }
  Result<void> check() override { return {}; }
  void close(std::function<void()> closed) override {
    if (in_flight_ != 0) ++late_;
    closed_ = true;
    reactors_.post(reactors_.count() - 1, std::move(closed));
  }

  struct ReactorAio : NoAio {
    unsigned reactor = 0;
  };

 private:
  ThreadedReactors& reactors_;
  std::atomic<unsigned>& late_;
  const backend::Info info_;
  std::atomic<bool> closed_ = false;
  std::atomic<unsigned> in_flight_ = 0;
  std::atomic<unsigned> count_ = 0;
};

// An owner elsewhere that does everything, after a turn of the reactor; now and then it refuses.
class EagerLink : public Link {
 public:
  EagerLink(ThreadedReactors& reactors, unsigned reactor)
      : reactors_(reactors), reactor_(reactor) {}
  void start(Command& command, uint64_t) override {
    const bool refuses = ++count_ % 5 == 0;
    reactors_.post(reactor_, [&command, refuses] {
      if (refuses) return return_forwarded(command);
      finish_forwarded(command, scsi::Status::kGood, {}, {});
    });
  }
  void abort(Command&) override {}  // its answer is on its way
  void function(LinkFunction, uint64_t, std::function<void(bool)> done) override {
    const bool refuses = ++functions_ % 2 == 0;
    reactors_.post(reactor_, [done = std::move(done), refuses] { done(!refuses); });
  }
  void close(bool, std::function<void()> done) override {
    reactors_.post(reactor_, std::move(done));
  }

 private:
  ThreadedReactors& reactors_;
  const unsigned reactor_;
  unsigned count_ = 0;
  unsigned functions_ = 0;
};

class EagerForwarding : public Forwarding {
 public:
  explicit EagerForwarding(ThreadedReactors& reactors) : reactors_(reactors) {}
  std::shared_ptr<Link> open(const std::shared_ptr<Nexus>& nexus, uint16_t) override {
    return std::make_shared<EagerLink>(reactors_, nexus->reactor_context().reactor);
  }

 private:
  ThreadedReactors& reactors_;
};

// One initiator on one reactor. A dropped nexus is closed and opened again, as a host does.
class Host {
 public:
  Host(std::shared_ptr<Target> target, ThreadedReactors& reactors, Forwarding& forwarding,
       unsigned reactor)
      : target_(std::move(target)), reactors_(reactors), reactor_(reactor), random_(reactor + 1) {
    aio_.reactor = reactor;
    context_ = {&aio_, &pool_, &reactors, reactor, &now_, &latencies_, &forwarding};
    for (auto& slot : slots_) {
      slot.host = this;
      slot.command.context = &slot;
      slot.command.complete = [](Command& c) {
        auto& s = *static_cast<Slot*>(c.context);
        if (std::exchange(s.busy, false) == false) ++s.host->twice;
        s.host->reactors_.post(s.host->reactor_, [&s] { s.host->ended(s); });
      };
    }
  }

  void run() {
    open();
    for (auto& slot : slots_) next(slot);
    reactors_.run(reactor_, [this] { return closed_; });
  }

  unsigned good = 0;
  unsigned twice = 0;
  unsigned resets = 0;
  std::atomic<bool> finished = false;

 private:
  struct Slot {
    Command command;
    std::vector<uint8_t> data = std::vector<uint8_t>(4096);
    Host* host = nullptr;
    bool busy = false;
  };

  void open() {
    NexusId id;
    id.initiator_name = "iqn.2026-11.test:" + std::to_string(reactor_);
    nexus_ = Nexus::open(target_, id, context_);
    nexus_->drop = [this](std::string) {
      nexus_->close(true, [] {});
      open();
    };
  }

  void next(Slot& slot) {
    if (begun_ == kCommands) return;
    ++begun_;
    now_ += kMillisecond;
    if (begun_ % 16 == 0) nexus_->tick();
    Command& c = slot.command;
    c.cdb = {kOpcodes[random_() % kOpcodes.size()]};
    store_be32(&c.cdb[2], random_() % 24);
    store_be16(&c.cdb[7], static_cast<uint16_t>(1 + random_() % 8));
    c.attribute = random_() % 50 == 0 ? TaskAttribute::kOrdered : TaskAttribute::kSimple;
    c.expected_data_in = c.expected_data_out = 4096;
    slot.busy = true;
    const std::shared_ptr<Nexus> nexus = nexus_;
    if (nexus->begin(c)) {
      c.data_out.clear();
      c.data_out.push_back({BufferRef(), slot.data.data(), c.data_out_wanted});
      c.data_out_size = c.data_out_wanted;
      nexus->data_ready(c);
    }
    if (slot.busy && random_() % 100 == 0) nexus->abort(c);
    if (begun_ % 700 == 0) nexus->logical_unit_reset(0, [this](bool) { ++resets; });
  }

  void ended(Slot& slot) {
    ++ended_;
    latencies_.settle(now_);
    if (slot.command.status == scsi::Status::kGood && !slot.command.aborted()) ++good;
    slot.command.data_in.clear();
    if (ended_ == kCommands) {
      finished = true;
      nexus_->close(true, [this] { closed_ = true; });
    } else {
      next(slot);
    }
  }

  std::shared_ptr<Target> target_;
  ThreadedReactors& reactors_;
  const unsigned reactor_;
  WatchedBackend::ReactorAio aio_;
  BufferPool pool_{size_t{8} << 20};
  Nanos now_ = 0;
  LatencyLog latencies_;
  ReactorContext context_;
  std::minstd_rand random_;
  std::vector<Slot> slots_ = std::vector<Slot>(kDepth);
  std::shared_ptr<Nexus> nexus_;
  unsigned begun_ = 0;
  unsigned ended_ = 0;
  bool closed_ = false;
};

class Moves {
 public:
  Moves(std::shared_ptr<Unit> unit, ThreadedReactors& reactors)
      : unit_(std::move(unit)), reactors_(reactors) {}

  void serve_here() {
    serve(*unit_, reactors_, std::make_unique<WatchedBackend>(reactors_, late), nullptr, {},
          ++epoch_, 1);
  }
  void away_and_back(bool fenced, bool forwarded) {
    std::promise<void> gone;
    if (fenced) {
      fence(*unit_, reactors_, [&gone] { gone.set_value(); });
    } else {
      release(*unit_, reactors_, [&gone](bool) { gone.set_value(); });
    }
    gone.get_future().wait();
    if (forwarded) follow(*unit_, reactors_, {Standing::kForwarder, ++epoch_, 2});
    unit_->poll_health();
    serve_here();
  }

  std::atomic<unsigned> late = 0;

 private:
  std::shared_ptr<Unit> unit_;
  ThreadedReactors& reactors_;
  uint64_t epoch_ = 0;
};

TEST(OwnershipStress, NoCommandReachesAClosedBackendAndEveryCommandEndsOnce) {
  ThreadedReactors reactors(kThreads);
  EagerForwarding forwarding(reactors);
  auto unit = open_unopened({}, {kSize, true}, kThreads);
  auto target = std::make_shared<Target>("iqn.2026-11.dev.sluice:stress", "", 1);
  target->set_luns({{0, unit}}, reactors);
  Moves moves(unit, reactors);
  moves.serve_here();
  std::vector<std::unique_ptr<Host>> hosts;
  for (unsigned i = 0; i < kThreads; ++i) {
    hosts.push_back(std::make_unique<Host>(target, reactors, forwarding, i));
  }
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      hosts[i]->run();
      reactors.run(i, [&over] { return over.load(); });  // the control thread still posts here
    });
  }
  unsigned moved = 0;
  const auto busy = [&] {
    for (const auto& host : hosts) {
      if (!host->finished) return true;
    }
    return false;
  };
  for (; busy(); ++moved) moves.away_and_back(moved % 4 == 3, moved % 2 == 0);
  over = true;
  for (unsigned i = 0; i < kThreads; ++i) reactors.post(i, [] {});
  for (auto& thread : threads) thread.join();
  EXPECT_GT(moved, 0u);
  RecordProperty("moves", static_cast<int>(moved));
  EXPECT_EQ(moves.late, 0u);
  for (const auto& host : hosts) {
    EXPECT_EQ(host->twice, 0u);
    EXPECT_GT(host->good, 0u);
    EXPECT_GT(host->resets, 0u);
  }
  EXPECT_EQ(unit->statistics().snapshot().in_flight, 0u);
}

}  // namespace
}  // namespace sluice::lun
