// Hosts on several threads read and write while one of them is preempted again and again. The gate
// asks no lock about reservations; the thread sanitizer watches, and a backend that knows who may.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "nexus/exports.h"
#include "nexus/nexus.h"
#include "scsi/pr_out_list.h"
#include "unit/latency_log.h"
#include "unit/reservations/reservations.h"
#include "unit/statistics.h"
#include "unit/test_backend.h"
#include "unit/test_threads.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

constexpr unsigned kVictims = 2;
constexpr unsigned kRounds = 100;
constexpr unsigned kDepth = 4;
constexpr uint64_t kOwnKey = uint64_t{1} << 40;  // the preemptor's

class NoAio : public Aio {
 public:
  void submit(AioOp&) override { std::abort(); }
};

// What every host may know. A victim registers with a new key each time and notes for each of its
// blocks under which it sent the last command: none may execute under a key whose preemption was
// answered. Reads count too: PREEMPT AND ABORT's look at all blocks waits for writers anyway.
struct Fence {
  std::array<std::atomic<uint32_t>, kVictims> key{};            // registered now
  std::array<std::atomic<uint32_t>, kVictims> dead{};           // preempted last
  std::array<std::atomic<uint32_t>, kVictims * kDepth> sent{};  // by block
  std::atomic<unsigned> breaches = 0;
};

class FencedBackend final : public backend::Backend {
 public:
  explicit FencedBackend(Fence& fence) : fence_(fence) {}
  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return 1 << 20; }
  bool submit(backend::Io& io, Aio&) override {
    io.result = 0;
    if (io.op == backend::Op::kCheckFence) return true;
    // So that preemption finds some here, past the gate.
    for (int i = 0; i < 3; ++i) std::this_thread::yield();
    const uint64_t block = io.offset / 512;
    if (fence_.sent[block] <= fence_.dead[block / kDepth]) ++fence_.breaches;
    io.result = static_cast<int64_t>(io.length);
    return true;
  }
  bool write_cache() const override { return false; }
  Result<void> set_write_cache(bool) override { return Error{"fixed"}; }
  Result<backend::Extent> allocation(uint64_t, uint64_t limit) const override {
    return backend::Extent{limit, true};
  }
  Result<void> resize(uint64_t) override { return Error{"fixed"}; }
  Result<void> check() override { return {}; }

 private:
  Fence& fence_;
  const backend::Info info_;
};

struct Slot {
  Command command;
  std::vector<uint8_t> data;
  std::function<void()> ended;
  bool late_data = false;
};

// A host on one reactor, whose commands end in posted tasks.
class Host {
 public:
  Host(std::shared_ptr<Target> target, ThreadedReactors& reactors, unsigned reactor)
      : target_(std::move(target)), reactors_(reactors), reactor_(reactor) {}
  virtual ~Host() = default;

  void run() {
    NexusId id;
    id.initiator_name = "iqn.2026-11.test:" + std::to_string(reactor_);
    nexus_ = Nexus::open(target_, id, {&aio_, &pool_, &reactors_, reactor_, &now_, &latencies_});
    begin();
    reactors_.run(reactor_, [this] { return closed_; });
  }

 protected:
  virtual void begin() = 0;
  void close() {
    nexus_->close(false, [this] { closed_ = true; });
  }
  void send(Slot& slot, std::array<uint8_t, 16> cdb, std::function<void()> ended) {
    Command& c = slot.command;
    c.cdb = cdb;
    c.expected_data_in = 4096;
    c.expected_data_out = static_cast<uint32_t>(slot.data.size());
    c.context = &slot;
    slot.ended = [this, ended = std::move(ended)] {
      reactors_.post(reactor_, [this, ended] {
        latencies_.settle(now_);
        ended();
      });
    };
    c.complete = [](Command& command) { static_cast<Slot*>(command.context)->ended(); };
    if (!nexus_->begin(c)) return;
    c.data_out.clear();
    c.data_out.push_back({BufferRef(), slot.data.data(), c.data_out_wanted});
    c.data_out_size = c.data_out_wanted;
    if (!slot.late_data) return nexus_->data_ready(c);
    // Runs before the end of a command that was aborted meanwhile is reported.
    reactors_.post(reactor_, [this, &c] { nexus_->data_ready(c); });
  }
  void reserve_out(Slot& slot, scsi::PrOutAction action, uint64_t key, uint64_t service_key,
                   std::function<void()> ended) {
    slot.data.assign(24, 0);
    store_be64(slot.data.data(), key);
    store_be64(slot.data.data() + 8, service_key);
    send(slot,
         {0x5f, static_cast<uint8_t>(action),
          static_cast<uint8_t>(scsi::PrType::kExclusiveAccessRegistrantsOnly), 0, 0, 0, 0, 0, 24},
         std::move(ended));
  }
  static bool good(const Slot& slot) {
    return slot.command.status == scsi::Status::kGood && !slot.command.aborted();
  }

  std::shared_ptr<Target> target_;
  ThreadedReactors& reactors_;
  const unsigned reactor_;
  NoAio aio_;
  BufferPool pool_{size_t{1} << 20};
  Nanos now_ = 0;
  LatencyLog latencies_;
  std::shared_ptr<Nexus> nexus_;
  bool closed_ = false;
};

// Reads and writes all the time; when it finds itself shut out, registers again.
class Victim final : public Host {
 public:
  Victim(std::shared_ptr<Target> target, ThreadedReactors& reactors, unsigned reactor, Fence& fence,
         const std::atomic<bool>& over)
      : Host(std::move(target), reactors, reactor), fence_(fence), over_(over) {}
  unsigned executed = 0;
  unsigned refused = 0;

 private:
  void begin() override {
    // The first command finds the unit attention of power on.
    send(registration_, {0x00}, [this] {
      enlist([this] {
        for (Slot& slot : slots_) {
          slot.late_data = running_++ % 2 != 0;
          next(slot);
        }
      });
    });
  }
  void next(Slot& slot) {
    if (over_) {
      if (--running_ == 0) close();
      return;
    }
    const auto index = static_cast<unsigned>(&slot - slots_.data());
    const auto lba = static_cast<uint8_t>(reactor_ * kDepth + index);
    const uint8_t opcode = index < kDepth / 2 ? 0x28 : 0x2a;
    slot.data.assign(opcode == 0x2a ? 512 : 0, 0);
    fence_.sent[lba] = key_;
    send(slot, {opcode, 0, 0, 0, 0, lba, 0, 0, 1}, [this, &slot] { ended(slot); });
  }
  void ended(Slot& slot) {
    executed += good(slot) ? 1 : 0;
    const bool shut_out = slot.command.status == scsi::Status::kReservationConflict;
    refused += shut_out ? 1 : 0;
    if (!shut_out || registering_) return next(slot);
    enlist([this, &slot] { next(slot); });
  }
  void enlist(std::function<void()> go_on) {
    registering_ = true;
    // What is sent from now on executes under the new key, or not at all.
    const uint32_t key = ++key_;
    reserve_out(registration_, scsi::PrOutAction::kRegisterAndIgnoreExistingKey, 0, key,
                [this, key, go_on = std::move(go_on)] {
                  registering_ = false;
                  if (good(registration_)) fence_.key[reactor_] = key;
                  go_on();
                });
  }

  Fence& fence_;
  const std::atomic<bool>& over_;
  std::vector<Slot> slots_ = std::vector<Slot>(kDepth);
  Slot registration_;
  unsigned running_ = 0;
  uint32_t key_ = 0;
  bool registering_ = false;
};

// Registers, reserves, then preempts the others in turn.
class Preemptor final : public Host {
 public:
  Preemptor(std::shared_ptr<Target> target, ThreadedReactors& reactors, Fence& fence,
            std::atomic<bool>& over)
      : Host(std::move(target), reactors, kVictims), fence_(fence), over_(over) {}
  unsigned preempted = 0;

 private:
  void begin() override {
    // The first command finds the unit attention of power on.
    send(slot_, {0x00}, [this] {
      reserve_out(slot_, scsi::PrOutAction::kRegisterAndIgnoreExistingKey, 0, kOwnKey, [this] {
        reserve_out(slot_, scsi::PrOutAction::kReserve, kOwnKey, 0, [this] { preempt(); });
      });
    });
  }
  void preempt() {
    if (preempted == kRounds || fence_.breaches != 0) {
      over_ = true;
      return close();
    }
    const unsigned victim = next_++ % kVictims;
    const uint32_t key = fence_.key[victim];
    if (key <= fence_.dead[victim]) return reactors_.post(reactor_, [this] { preempt(); });
    reserve_out(slot_, scsi::PrOutAction::kPreemptAndAbort, kOwnKey, key, [this, victim, key] {
      if (good(slot_)) {
        fence_.dead[victim] = key;
        ++preempted;
      }
      preempt();
    });
  }

  Fence& fence_;
  std::atomic<bool>& over_;
  Slot slot_;
  unsigned next_ = 0;
};

TEST(ReservationRace, AfterTheAnswerToPreemptAndAbortNoCommandOfThePreemptedNexusExecutes) {
  ThreadedReactors reactors(kVictims + 1);
  Fence fence;
  std::atomic<bool> over = false;
  auto unit = std::make_shared<Unit>(UnitIdentity(), std::make_unique<FencedBackend>(fence),
                                     reactors.count(), nullptr);
  auto target = std::make_shared<Target>("iqn.2026-11.dev.sluice:race", "", 1);
  target->set_luns({{0, unit}}, reactors);
  std::vector<std::unique_ptr<Victim>> victims;
  for (unsigned i = 0; i < kVictims; ++i) {
    victims.push_back(std::make_unique<Victim>(target, reactors, i, fence, over));
  }
  Preemptor preemptor(target, reactors, fence, over);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { preemptor.run(); });
  for (auto& victim : victims) threads.emplace_back([&victim] { victim->run(); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(fence.breaches, 0u);
  EXPECT_EQ(preemptor.preempted, kRounds);
  for (const auto& victim : victims) {
    EXPECT_GT(victim->executed, 0u);
    EXPECT_GT(victim->refused, 0u);
  }
  EXPECT_EQ(unit->statistics().snapshot().in_flight, 0u);
}

}  // namespace
}  // namespace sluice::lun
