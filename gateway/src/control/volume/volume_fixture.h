// Tests of a volume, one step() at a time, with a storage and a unit that record the calls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "base/limits.h"
#include "control/test_objects.h"
#include "control/volume/volume.h"

namespace sluice::control {

// What two gateways of a node share: the lock and the record.
struct Disk {
  bool locked = false, broken = false;
  std::optional<Record> record;
  Outlasts outlasts{};
  HolderAnswer answer;  // answer of the lock's holder
  std::string kill_problem;
  int asked = 0, killed = 0;
  // --- behaves as a Ceph image: answers later
  bool remote = false;
  bool opening = false, claiming = false, closing = false, growing = false;
  std::string no_growth;
  std::string lost;
  std::function<void()> wake;
};

// Releases the lock in its destructor, as closing the description does.
class LockedBackend final : public backend::Backend {
 public:
  explicit LockedBackend(Disk& disk) : disk_(disk) { disk_.locked = true; }
  ~LockedBackend() override { disk_.locked = false; }
  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return 1 << 20; }
  bool submit(backend::Io& io, Aio&) override {
    io.result = -EIO;
    return true;
  }
  bool write_cache() const override { return false; }
  Result<void> set_write_cache(bool) override { return {}; }
  Result<backend::Extent> allocation(uint64_t, uint64_t limit) const override {
    return backend::Extent{limit, true};
  }
  Result<void> resize(uint64_t) override { return {}; }
  Result<void> check() override { return {}; }

 private:
  Disk& disk_;
  backend::Info info_;
};

class FakeStorage final : public VolumeStorage {
 public:
  explicit FakeStorage(Disk& disk) : disk_(disk) {}
  Opened open(const wire::DesiredVolume&) override {
    if (disk_.opening) return {.pending = true};
    if (disk_.broken) return {.problem = "no such file"};
    if (disk_.locked) return {.held = true, .problem = "in use"};
    return {.backend = std::make_unique<LockedBackend>(disk_)};
  }
  Result<std::optional<Record>> record() override { return disk_.record; }
  Result<Claim> claim(const Record& record, Outlasts outlasts) override {
    EXPECT_TRUE(disk_.locked) << "claimed without the lock";
    if (disk_.claiming) return Claim::kPending;
    disk_.record = record;
    disk_.outlasts = outlasts;
    return Claim::kDone;
  }
  Result<Growth> grow(uint64_t) override {
    if (!disk_.no_growth.empty()) return Error{disk_.no_growth};
    return disk_.growing ? Growth::kPending : Growth::kDone;
  }
  void update(const Record& record, std::function<void(Result<void>)> done) override {
    disk_.record = record;
    done({});
  }
  HolderAnswer ask(const Record&, uint64_t) override {
    ++disk_.asked;
    return disk_.answer;
  }
  Result<void> kill(const Record&) override {
    ++disk_.killed;
    if (!disk_.kill_problem.empty()) return Error{disk_.kill_problem};
    disk_.locked = false;
    return {};
  }
  Holder self() const override {
    Holder holder;
    holder.pid = 1;
    holder.incarnation = "me";
    return holder;
  }
  int64_t allocated_bytes() const override { return 0; }
  bool record_suffices() const override { return !disk_.remote; }
  std::string lost() const override { return disk_.lost; }
  bool is_closed() const override { return !disk_.opening && !disk_.closing; }

 private:
  Disk& disk_;
};

struct UnitLog {
  std::unique_ptr<backend::Backend> backend;
  uint64_t serving = 0;
  uint32_t pr_generation = 0;
  std::optional<lun::Role> role;
  std::function<void(bool)> released;
  std::function<void()> fenced;
  wire::DesiredVolume shape;  // as last served
  lun::MediumHealth medium;
};

class FakeUnit final : public LogicalUnitControl {
 public:
  explicit FakeUnit(UnitLog& log) : log_(log) {}
  void serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
             uint64_t epoch) override {
    log_.backend = std::move(backend);
    log_.serving = epoch;
    log_.pr_generation = state.generation;
  }
  void follow(const lun::Role& role) override {
    EXPECT_EQ(log_.backend, nullptr) << "follows while it has a backend";
    log_.role = role;
  }
  void release(std::function<void(bool)> done) override { log_.released = std::move(done); }
  void fence(std::function<void()> done) override { log_.fenced = std::move(done); }
  Result<void> shape(const wire::DesiredVolume& volume, bool serving) override {
    if (serving) log_.shape = volume;
    return {};
  }
  lun::MediumHealth medium_health() const override { return log_.medium; }

 private:
  UnitLog& log_;
};

class VolumeTest : public testing::Test, public VolumeServices {
 protected:
  static constexpr uint16_t kSelf = 3;
  static constexpr uint16_t kOther = 4;

  VolumeTest() {
    volume_ = std::make_shared<Volume>(kVolumeUid, kSelf, std::make_unique<FakeUnit>(unit_),
                                       static_cast<VolumeServices&>(*this), [this] { ++wakes_; });
  }

  static wire::DesiredVolume order(wire::VolumeRole role, uint64_t epoch, uint64_t number,
                                   uint32_t owner = kSelf) {
    wire::DesiredVolume volume;
    volume.set_uid(kVolumeUid);
    volume.set_role(role);
    volume.set_epoch(epoch);
    volume.set_order(number);
    volume.set_owner(owner);
    volume.set_size_bytes(1 << 20);
    return volume;
  }
  Nanos give(const wire::DesiredVolume& volume) {
    EXPECT_TRUE(volume_->order(volume));
    return volume_->step(now_);
  }
  void loaded(Loaded::What what, uint64_t generation = 0, uint32_t pr_generation = 0) {
    ASSERT_TRUE(load_done_);
    Loaded loaded;
    loaded.what = what;
    loaded.generation = generation;
    loaded.state.generation = pr_generation;
    std::exchange(load_done_, nullptr)(loaded);
    next_ = volume_->step(now_);
  }
  void own(uint64_t epoch, uint64_t number) {
    give(order(wire::VOLUME_ROLE_OWNER, epoch, number));
    loaded(Loaded::What::kState);
    ASSERT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  }
  void release_done() {
    ASSERT_TRUE(unit_.released);
    unit_.backend.reset();
    std::exchange(unit_.released, nullptr)(true);
    volume_->step(now_);
  }
  wire::VolumeObserved last() const {
    return reports_.empty() ? wire::VolumeObserved() : reports_.back();
  }

  // --- VolumeServices
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume&,
                                                    std::function<void()> wake) override {
    disk_.wake = std::move(wake);
    return std::shared_ptr<VolumeStorage>(std::make_shared<FakeStorage>(disk_));
  }
  void load(const Record& beside, uint64_t, bool settle,
            std::function<void(Loaded)> done) override {
    beside_ = beside;
    settle_ = settle;
    ++loads_;
    load_done_ = std::move(done);
  }
  void open_commits(Record record, std::shared_ptr<VolumeStorage>) override { commits_ = record; }
  void close_commits(const std::string&) override { commits_.reset(); }
  bool is_cut_off_from(uint16_t owner) const override { return owner == cut_off_from_; }
  void report(const wire::VolumeObserved& observed) override { reports_.push_back(observed); }

  Disk disk_;
  UnitLog unit_;
  Nanos now_ = kSecond, next_ = 0;
  std::function<void(Loaded)> load_done_;
  Record beside_;
  bool settle_ = false;
  int loads_ = 0;
  std::atomic<uint16_t> cut_off_from_ = 0;
  std::atomic<int> wakes_ = 0;
  std::optional<Record> commits_;
  std::vector<wire::VolumeObserved> reports_;
  std::shared_ptr<Volume> volume_;
};

}  // namespace sluice::control
