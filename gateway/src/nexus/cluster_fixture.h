// A unit of a cluster on gateway number 1, and links that a test controls.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/handler.h"
#include "nexus/forwarding.h"
#include "nexus/lun_fixture.h"
#include "unit/closing.h"
#include "unit/ownership.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {

// A link to one owner. The test ends its commands.
class FakeLink : public Link {
 public:
  struct Function {
    LinkFunction function;
    uint64_t lun_field;
    std::function<void(bool)> done;
  };

  void start(Command& command, uint64_t epoch) override { started.push_back({&command, epoch}); }
  void abort(Command& command) override { aborted.push_back(&command); }
  void function(LinkFunction f, uint64_t lun_field, std::function<void(bool)> done) override {
    functions.push_back({f, lun_field, std::move(done)});
  }
  void close(bool was_lost, std::function<void()> done) override {
    lost = was_lost;
    closed.push_back(std::move(done));
  }
  bool ended() const override { return over; }

  std::vector<std::pair<Command*, uint64_t>> started;
  std::vector<Command*> aborted;
  std::vector<Function> functions;
  std::vector<std::function<void()>> closed;
  bool lost = false;
  bool over = false;
};

class FakeForwarding : public Forwarding {
 public:
  std::shared_ptr<Link> open(const std::shared_ptr<Nexus>&, uint16_t owner) override {
    if (!known) return nullptr;
    auto link = std::make_shared<FakeLink>();
    links.emplace_back(owner, link);
    return link;
  }
  FakeLink& last() { return *links.back().second; }

  bool known = true;
  std::vector<std::pair<uint16_t, std::shared_ptr<FakeLink>>> links;  // in order of opening
};

// The events of a backend, also after its destruction.
struct Fate {
  unsigned closed = 0;
  bool closes_late = false;  // closes when a test calls the functions in `closing`
  std::vector<std::function<void()>> closing;
  unsigned destroyed = 0;
  unsigned late = 0;  // requests after close()
  unsigned flushes = 0;
};

class OwnedBackend : public TestBackend {
 public:
  OwnedBackend(uint64_t size, std::shared_ptr<Fate> fate)
      : TestBackend(size), fate_(std::move(fate)) {}
  ~OwnedBackend() override { ++fate_->destroyed; }
  void close(std::function<void()> closed) override {
    ++fate_->closed;
    if (!fate_->closes_late) return closed();
    fate_->closing.push_back(std::move(closed));
  }
  bool submit(backend::Io& io, Aio& aio) override {
    if (fate_->closed) ++fate_->late;
    if (io.op == backend::Op::kFlush) ++fate_->flushes;
    return TestBackend::submit(io, aio);
  }

 private:
  std::shared_ptr<Fate> fate_;
};

class ClusterTest : public LunTest {
 protected:
  static constexpr uint16_t kSelf = 1;

  void SetUp() override {
    UnitIdentity identity;
    identity.uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    identity.serial = "0102030405060708";
    unit = open_unopened(identity, {kBlocks * block, false}, reactors.count());
    target = std::make_shared<Target>("iqn.2026-11.dev.sluice:test", "", kSelf);
    target->set_luns({{0, unit}}, reactors);
    forwarding = &links;
  }
  void TearDown() override {
    if (fate->destroyed || fate->closed) backend = nullptr;
    if (backend) backend->release_all();
    for (const auto& [owner, link] : links.links) {
      for (Command* command : link->aborted) finish_good(*command);
      for (auto& done : std::exchange(link->closed, {})) reactors.post(0, std::move(done));
    }
    for (auto& nexus : nexuses) nexus->close(false, [] {});
    for (int round = 0; round < 3; ++round) {
      reactors.run();
      for (const auto& [owner, link] : links.links) {
        for (Command* command : std::exchange(link->aborted, {})) {
          if (command->stage != Stage::kDone) finish_good(*command);
        }
        for (auto& done : std::exchange(link->closed, {})) reactors.post(0, std::move(done));
      }
    }
    nexuses.clear();
    tasks.clear();
  }

  void serve_here(uint64_t epoch, ReservationState reservations = {}, uint64_t blocks = kBlocks) {
    fate = std::make_shared<Fate>();
    auto owned = std::make_unique<OwnedBackend>(blocks * block, fate);
    backend = owned.get();
    serve(*unit, reactors, std::move(owned), nullptr, std::move(reservations), epoch, kSelf);
    reactors.run();
  }
  void follow_to(uint16_t owner, uint64_t epoch, Standing standing = Standing::kForwarder) {
    follow(*unit, reactors, {standing, epoch, owner});
    reactors.run();
  }
  // -1: not complete; else the result.
  std::shared_ptr<int> release_unit() {
    auto result = std::make_shared<int>(-1);
    release(*unit, reactors, [result](bool flushed) { *result = flushed; });
    return result;
  }
  std::shared_ptr<int> fence_unit() {
    auto result = std::make_shared<int>(-1);
    fence(*unit, reactors, [result] { *result = 1; });
    return result;
  }
  // Counts dropped nexuses.
  void watch_drops(Nexus& nexus) {
    nexus.drop = [this](std::string) { ++drops; };
  }
  void forget_attentions(Nexus& nexus) {
    UnitAttention ua;
    while (unit->attached().pop(*nexus.use(0), &ua)) {
    }
  }

  FakeForwarding links;
  std::shared_ptr<Fate> fate = std::make_shared<Fate>();
  unsigned drops = 0;
};

inline Bytes report_groups() { return {0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}; }
inline Bytes set_groups() { return {0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0}; }
inline Bytes vpd(uint8_t page) { return {0x12, 1, page, 0, 252, 0}; }

inline constexpr uint32_t kInTransition = 0x02040a;
inline constexpr uint32_t kNotAvailable = 0x02040c;

}  // namespace sluice::lun
