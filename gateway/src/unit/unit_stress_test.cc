// Commands of several nexuses on several threads, concurrent with resets, aborts, unit attentions
// and resizes. The thread sanitizer checks them; the test ends only if every command is answered.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "nexus/exports.h"
#include "nexus/nexus.h"
#include "unit/latency_log.h"
#include "unit/reservations/reservations.h"
#include "unit/statistics.h"
#include "unit/test_threads.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

constexpr unsigned kThreads = 3;
constexpr unsigned kCommands = 4000;  // per nexus
constexpr unsigned kDepth = 8;
constexpr uint32_t kHotBlocks = 32;
constexpr uint64_t kResizes = 64;
constexpr uint64_t kResizeStep = 65536;  // bytes

class NoAio : public Aio {
 public:
  void submit(AioOp&) override { std::abort(); }
};

// One initiator on one reactor. Every write fills its blocks with one value, so a read that sees
// two values in one block saw a torn write.
class Host {
 public:
  // `open_hosts` counts the hosts whose nexus is open.
  Host(std::shared_ptr<Target> target, ThreadedReactors& reactors, unsigned reactor,
       std::atomic<unsigned>& open_hosts)
      : reactors_(reactors), reactor_(reactor), open_hosts_(open_hosts), random_(reactor + 1) {
    target_ = std::move(target);
    for (auto& slot : slots_) {
      slot.host = this;
      slot.command.context = &slot;
      slot.command.complete = [](Command& c) {
        auto& s = *static_cast<Slot*>(c.context);
        s.host->reactors_.post(s.host->reactor_, [&s] { s.host->ended(s); });
      };
    }
  }

  void run() {
    NexusId id;
    id.initiator_name = "iqn.2026-11.test:" + std::to_string(reactor_);
    nexus_ = Nexus::open(target_, id, {&aio_, &pool_, &reactors_, reactor_, &now_, &latencies_});
    for (auto& slot : slots_) next(slot);
    // Resets of the other hosts need this reactor, too.
    reactors_.run(reactor_, [this] { return open_hosts_ == 0; });
  }

  unsigned torn = 0;
  unsigned good = 0;
  unsigned resets = 0;      // done
  unsigned attentions = 0;  // reported

 private:
  struct Slot {
    Command command;
    std::vector<uint8_t> data = std::vector<uint8_t>(4096);
    Host* host = nullptr;
    bool read = false;
  };

  void next(Slot& slot) {
    if (begun_ == kCommands) return;
    ++begun_;
    Command& c = slot.command;
    slot.read = random_() % 2 == 0;
    c.cdb = {static_cast<uint8_t>(slot.read ? 0x28 : 0x2a)};
    store_be32(&c.cdb[2], random_() % (kHotBlocks - 8));
    store_be16(&c.cdb[7], static_cast<uint16_t>(1 + random_() % 8));
    c.attribute = random_() % 50 == 0 ? TaskAttribute::kOrdered : TaskAttribute::kSimple;
    c.expected_data_in = c.expected_data_out = 4096;
    c.needs_stable_data = true;
    if (nexus_->begin(c)) {
      std::fill(slot.data.begin(), slot.data.end(), static_cast<uint8_t>(random_()));
      c.data_out.clear();
      c.data_out.push_back({BufferRef(), slot.data.data(), c.data_out_wanted});
      c.data_out_size = c.data_out_wanted;
      nexus_->data_ready(c);
    }
    if (random_() % 100 == 0) nexus_->abort(c);
    if (begun_ % 1000 == 0) {
      ++resets_begun_;
      nexus_->logical_unit_reset(0, [this](bool) {
        ++resets;
        close_if_answered();
      });
    }
    if (begun_ % 500 == 0) nexus_->find(0)->unit().attached().raise({0x2a, 0x01}, nullptr);
  }

  void ended(Slot& slot) {
    ++ended_;
    latencies_.settle(now_);
    if (slot.command.status == scsi::Status::kCheckCondition) ++attentions;
    if (slot.read && slot.command.status == scsi::Status::kGood && !slot.command.aborted()) {
      ++good;
      look(slot.command);
    }
    slot.command.data_in.clear();
    if (ended_ == kCommands) return close_if_answered();
    next(slot);
  }

  // A nexus that closes drops the answers to its resets, and other threads may delay them.
  void close_if_answered() {
    if (ended_ != kCommands || resets != resets_begun_ || closes_) return;
    closes_ = true;
    nexus_->close(true, [this] {
      if (--open_hosts_ != 0) return;
      for (unsigned reactor = 0; reactor < kThreads; ++reactor) reactors_.post(reactor, [] {});
    });
  }

  void look(const Command& command) {
    const Slice& slice = command.data_in.front();
    for (uint32_t at = 0; at < slice.size; at += 512) {
      for (uint32_t i = 1; i < 512; ++i) {
        if (slice.data[at + i] != slice.data[at]) {
          ++torn;
          break;
        }
      }
    }
  }

  ThreadedReactors& reactors_;
  const unsigned reactor_;
  std::atomic<unsigned>& open_hosts_;
  std::shared_ptr<Target> target_;
  NoAio aio_;
  BufferPool pool_{size_t{8} << 20};
  Nanos now_ = 0;
  LatencyLog latencies_;
  std::minstd_rand random_;
  std::vector<Slot> slots_ = std::vector<Slot>(kDepth);
  std::shared_ptr<Nexus> nexus_;
  unsigned begun_ = 0;
  unsigned ended_ = 0;
  unsigned resets_begun_ = 0;
  bool closes_ = false;
};

TEST(UnitStress, EveryCommandEndsAndNoReadIsTornDuringResetsAndResizes) {
  ThreadedReactors reactors(kThreads);
  backend::Spec spec;
  spec.kind = "memory";
  spec.size = 1 << 20;
  auto unit =
      std::make_shared<Unit>(UnitIdentity(), backend::open(spec).value(), kThreads, nullptr);
  auto target = std::make_shared<Target>("iqn.2026-11.dev.sluice:stress", "", 1);
  target->set_luns({{0, unit}}, reactors);
  std::atomic<unsigned> open_hosts = kThreads;
  std::vector<std::unique_ptr<Host>> hosts;
  for (unsigned i = 0; i < kThreads; ++i) {
    hosts.push_back(std::make_unique<Host>(target, reactors, i, open_hosts));
  }
  std::vector<std::thread> threads;
  for (auto& host : hosts) threads.emplace_back([&host] { host->run(); });
  for (uint64_t i = 1; i <= kResizes; ++i) {
    EXPECT_TRUE(unit->resize(spec.size + i * kResizeStep).ok());
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  for (const auto& host : hosts) {
    EXPECT_EQ(host->torn, 0u);
    EXPECT_GT(host->good, 0u);
    EXPECT_EQ(host->resets, kCommands / 1000);
    EXPECT_GT(host->attentions, 0u);
  }
  EXPECT_EQ(unit->blocks(), (spec.size + kResizes * kResizeStep) / 512);
  EXPECT_EQ(unit->statistics().snapshot().in_flight, 0u);
}

}  // namespace
}  // namespace sluice::lun
