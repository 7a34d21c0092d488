// The life of a volume, turn by turn, with a place and a unit that only remember.
#include "control/volume.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

// What two gateways of a node share: the data's lock and the record.
struct Disk {
  bool locked = false, broken = false;
  std::optional<Record> record;
  Outlasts outlasts{};
  HolderAnswer answer;  // of whoever holds the lock
  std::string kill_problem;
  int asked = 0, killed = 0;
};

// Lets go of the lock when it is destroyed, as a closed description does.
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

class FakePlace final : public Place {
 public:
  explicit FakePlace(Disk& disk) : disk_(disk) {}
  Opened open(const wire::DesiredVolume&) override {
    if (disk_.broken) return {nullptr, false, "no such file"};
    if (disk_.locked) return {nullptr, true, "in use"};
    return {std::make_unique<LockedBackend>(disk_), false, {}};
  }
  Result<std::optional<Record>> record() override { return disk_.record; }
  Result<void> claim(const Record& record, Outlasts outlasts) override {
    EXPECT_TRUE(disk_.locked) << "claimed without the lock";
    disk_.record = record;
    disk_.outlasts = outlasts;
    return {};
  }
  Result<void> update(const Record& record) override {
    disk_.record = record;
    return {};
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
};

class FakeUnit final : public UnitDoor {
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
  Result<void> shape(const wire::DesiredVolume&, bool) override { return {}; }

 private:
  UnitLog& log_;
};

class VolumeTest : public testing::Test, public VolumeServices {
 protected:
  static constexpr uint16_t kSelf = 3;
  static constexpr uint16_t kOther = 4;

  VolumeTest() {
    volume_ = std::make_shared<Volume>(kVolumeUid, kSelf, std::make_unique<FakeUnit>(unit_),
                                       static_cast<VolumeServices&>(*this), [] {});
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
    return volume_->turn(now_);
  }
  void loaded(Loaded::What what, uint64_t generation = 0, uint32_t pr_generation = 0) {
    ASSERT_TRUE(load_done_);
    Loaded loaded;
    loaded.what = what;
    loaded.generation = generation;
    loaded.state.generation = pr_generation;
    std::exchange(load_done_, nullptr)(loaded);
    next_ = volume_->turn(now_);
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
    volume_->turn(now_);
  }
  wire::VolumeObserved last() const {
    return reports_.empty() ? wire::VolumeObserved() : reports_.back();
  }

  // --- VolumeServices
  Result<std::shared_ptr<Place>> place(const wire::DesiredVolume&) override {
    return std::shared_ptr<Place>(std::make_shared<FakePlace>(disk_));
  }
  void load(const std::string&, uint64_t, bool settle, std::function<void(Loaded)> done) override {
    settle_ = settle;
    ++loads_;
    load_done_ = std::move(done);
  }
  void open_commits(Record record, std::shared_ptr<Place>) override { commits_ = record; }
  void close_commits(const std::string&) override { commits_.reset(); }
  void report(const wire::VolumeObserved& observed) override { reports_.push_back(observed); }

  Disk disk_;
  UnitLog unit_;
  Nanos now_ = kSecond, next_ = 0;
  std::function<void(Loaded)> load_done_;
  bool settle_ = false;
  int loads_ = 0;
  std::optional<Record> commits_;
  std::vector<wire::VolumeObserved> reports_;
  std::shared_ptr<Volume> volume_;
};

TEST_F(VolumeTest, AcquiringTakesTheLockTellsItsOrderAndServesNothing) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, kOther));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(last().order(), 10u);
  EXPECT_TRUE(disk_.locked && disk_.outlasts == Outlasts::kProcess);
  EXPECT_EQ(unit_.serving, 0u);
  EXPECT_EQ(disk_.record->holder.incarnation, "me");
  EXPECT_EQ(unit_.role->standing, lun::Standing::kForwarder);
  give(order(wire::VOLUME_ROLE_OWNER, 6, 11));
  loaded(Loaded::What::kState, 4, 77);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(unit_.serving, 6u);
  EXPECT_EQ(unit_.pr_generation, 77u);
  EXPECT_EQ(disk_.outlasts, Outlasts::kPowerCut);
  EXPECT_EQ(disk_.record->epoch, 6u);
  EXPECT_EQ(disk_.record->generation, 4u);
  EXPECT_EQ(commits_->generation, 4u);
}

TEST_F(VolumeTest, RecordWins) {
  disk_.record = Record();
  disk_.record->epoch = 9;
  give(order(wire::VOLUME_ROLE_OWNER, 8, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(disk_.record->epoch, 9u);
  EXPECT_EQ(unit_.serving, 0u);
}

TEST_F(VolumeTest, ReleaseIsFinalForTheEpoch) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_RELEASING, 5, 11));
  release_done();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().epoch(), 5u);
  unit_.serving = 0;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 12));  // CancelMove
  EXPECT_EQ(loads_, 1);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().order(), 12u);
  own(6, 13);
  EXPECT_EQ(unit_.serving, 6u);
}

TEST_F(VolumeTest, AFailedOpeningIsFinalForTheEpochToo) {
  disk_.broken = true;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_EQ(last().reason(), "no such file");
  EXPECT_EQ(unit_.role->standing, lun::Standing::kUnavailable);
  disk_.broken = false;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 11));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_FALSE(disk_.locked);
}

TEST_F(VolumeTest, ANewerEpochFencesWhoServes) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_FORWARDER, 6, 11, kOther));
  ASSERT_TRUE(unit_.fenced);
  EXPECT_FALSE(unit_.released);
  unit_.backend.reset();
  unit_.fenced();
  volume_->turn(now_);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FENCED);
  EXPECT_EQ(last().epoch(), 5u);
  EXPECT_EQ(unit_.role->standing, lun::Standing::kForwarder);
  EXPECT_EQ(unit_.role->owner, kOther);
  EXPECT_FALSE(commits_);
}

TEST_F(VolumeTest, AnEpochSeenByAPeerFencesToo) {
  own(5, 10);
  volume_->saw_epoch(6);
  volume_->turn(now_);
  EXPECT_TRUE(unit_.fenced);
}

TEST_F(VolumeTest, AHolderYieldsToTheSameOrNewerOrderAndRefusesAnOlder) {
  own(5, 10);
  EXPECT_EQ(volume_->asked(9).yield, Yield::kRefused);
  EXPECT_EQ(volume_->asked(9).order, 10u);
  volume_->turn(now_);
  EXPECT_FALSE(unit_.released);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->turn(now_);
  release_done();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kNotHeld);
}

TEST_F(VolumeTest, ALockThatWasGivenUpIsNotToldAgain) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, kOther));
  ASSERT_EQ(volume_->observed()->state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->turn(now_);
  EXPECT_FALSE(disk_.locked);
  EXPECT_FALSE(volume_->observed());
}

TEST_F(VolumeTest, WhoGaveALockUpInAnEpochThatItHadClosedSaysThatItIsClosed) {
  own(5, 10);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->turn(now_);
  release_done();
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 12));
  ASSERT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(volume_->asked(13).yield, Yield::kYielding);
  volume_->turn(now_);
  give(order(wire::VOLUME_ROLE_OWNER, 5, 14));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().order(), 14u);
}

TEST_F(VolumeTest, WhoYieldedTakesTheLockAgainOnlyWithANewerOrder) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->turn(now_);
  EXPECT_FALSE(disk_.locked);
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 11, 0));
  EXPECT_FALSE(disk_.locked);
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 12, 0));
  EXPECT_TRUE(disk_.locked);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
}

TEST_F(VolumeTest, AHeldLockIsAskedForAndPolled) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kYielding, 0};
  const Nanos wait = give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(disk_.asked, 1);
  EXPECT_GT(wait, 0);
  EXPECT_LE(wait, limits::kLockPollMost);
  EXPECT_TRUE(reports_.empty());
  disk_.locked = false;
  now_ += wait;
  volume_->turn(now_);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(disk_.killed, 0);
}

TEST_F(VolumeTest, AHolderThatSaysNothingIsKilled) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kSilent, 0};
  const Nanos wait = give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(disk_.killed, 1);
  volume_->turn(now_ + wait);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
}

TEST_F(VolumeTest, AHolderThatCannotBeKilledIsToldAndTheLockStillWaitedFor) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kSilent, 0};
  disk_.kill_problem = "another pid namespace";
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  for (int i = 0; i < 4; ++i) next_ = volume_->turn(now_ += limits::kHolderPatience);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_NE(last().reason().find("another pid namespace"), std::string::npos) << last().reason();
  EXPECT_NE(next_, Volume::kNever);
  disk_.locked = false;
  volume_->turn(now_);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
}

TEST_F(VolumeTest, AHolderWithANewerOrderIsLeftAlone) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kRefused, 12};
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_EQ(disk_.killed, 0);
}

TEST_F(VolumeTest, WithoutTheControlPlaneTheRecordOfTheSameEpochIsEnough) {
  disk_.record = Record();
  disk_.record->epoch = 5;
  disk_.record->generation = 3;
  disk_.record->reservations.generation = 42;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_TRUE(settle_) << "a commit of a former life may be on its way";
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(unit_.pr_generation, 42u);
}

TEST_F(VolumeTest, AnOlderRecordIsNotEnoughAndTheLoadIsTriedAgain) {
  disk_.record = Record();
  disk_.record->epoch = 4;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_FALSE(settle_);
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(next_, limits::kLoadAgain);
  EXPECT_EQ(unit_.serving, 0u);
  volume_->turn(now_);
  EXPECT_EQ(loads_, 2);
  loaded(Loaded::What::kState);
  EXPECT_EQ(unit_.serving, 5u);
}

TEST_F(VolumeTest, AnOlderOrderIsRefused) {
  own(5, 10);
  EXPECT_FALSE(volume_->order(order(wire::VOLUME_ROLE_RELEASING, 5, 9)));
  EXPECT_FALSE(volume_->order(order(wire::VOLUME_ROLE_FORWARDER, 4, 12)));
  volume_->turn(now_);
  EXPECT_FALSE(unit_.released);
}

TEST_F(VolumeTest, AnOrderThatReadsTheSameIsNewsAndIsReported) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_OWNER, 5, 11));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(last().order(), 11u);
}

TEST_F(VolumeTest, AVolumeThatIsNoLongerExportedIsReleasedFirst) {
  own(5, 10);
  bool gone = false;
  volume_->remove([&] { gone = true; });
  volume_->turn(now_);
  EXPECT_FALSE(gone);
  release_done();
  EXPECT_TRUE(gone);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
}

}  // namespace
}  // namespace sluice::control
