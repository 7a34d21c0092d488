#include "unit/reservations/reservation_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <utility>

#include "base/limits.h"
#include "commands/reservations/reservations_fixture.h"

namespace sluice::lun {
namespace {

const std::string kUnit = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

// One of everything.
ReservationState rich_state() {
  ReservationState s;
  s.generation = 7;
  s.aptpl = true;
  s.type = kWero;
  s.holder = test_nexus("a", 3);
  s.registrations = {{test_nexus("a", 3), 0xa, false, {}},
                     {test_nexus("b"), 0xffffffffffffffff, true, {2, 65535}},
                     {test_nexus("c"), 1, true, {}}};
  return s;
}

// A directory of which a power cut leaves what was synced: names as of the last directory sync,
// contents as of the last file sync. `cut_after` steps the power goes.
class PowerCutFiles : public RecordFiles {
 public:
  struct Disk {
    std::map<std::string, std::string> now;
    std::map<std::string, std::string> durable;
    int cut_after = INT32_MAX;
    int steps = 0;
    std::string failing;  // this step answers an error
  };
  explicit PowerCutFiles(Disk& disk) : disk_(disk) { disk.now = disk.durable; }

  Result<void> write_synced(const std::string& name, std::string_view text) override {
    if (!step("write")) return Error{"write failed"};
    if (!powered()) return {};
    disk_.now[name] = text;
    return {};
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (!step("rename")) return Error{"rename failed"};
    if (!powered()) return {};
    disk_.now[to] = disk_.now.at(from);
    disk_.now.erase(from);
    return {};
  }
  Result<void> sync_directory() override {
    if (!step("sync")) return Error{"sync failed"};
    if (!powered()) return {};
    disk_.durable = disk_.now;
    return {};
  }
  Result<std::string> read(const std::string& name, bool* exists) override {
    const auto at = disk_.now.find(name);
    *exists = at != disk_.now.end();
    return *exists ? at->second : std::string();
  }
  std::string path(const std::string& name) const override { return "/state/" + name; }

 private:
  bool powered() const { return disk_.steps <= disk_.cut_after; }
  bool step(const std::string& name) {
    ++disk_.steps;
    return disk_.failing != name;
  }
  Disk& disk_;
};

// Runs what is posted to it where it is posted from: the store's own threads here.
class InlineReactors final : public Reactors {
 public:
  unsigned count() const override { return 8; }
  unsigned current() const override { return 8; }
  void post(unsigned reactor, std::function<void()> task) override {
    EXPECT_EQ(reactor, 5u) << "not where the reply was wanted";
    task();
  }
};
InlineReactors reactors;
const StoreReply kHere = {&reactors, 5};

CommitOutcome commit(ReservationStore& store, const ReservationState& state,
                     const std::string& unit = kUnit) {
  std::promise<CommitOutcome> outcome;
  store.commit(unit, state, kHere,
               [&](CommitOutcome o, const std::string&) { outcome.set_value(o); });
  return outcome.get_future().get();
}

Result<ReservationState> read(ReservationStore& store, const std::string& unit = kUnit) {
  std::promise<Result<ReservationState>> state;
  store.read(unit, kHere, [&](Result<ReservationState> s) { state.set_value(std::move(s)); });
  return state.get_future().get();
}

ReservationState left_by_power_cut(PowerCutFiles::Disk disk) {
  FileReservationStore restarted(std::make_unique<PowerCutFiles>(disk));
  return restarted.load(kUnit).value();
}

TEST(ReservationRecord, EveryFieldIsReadBack) {
  const ReservationState s = rich_state();
  const auto back = parse_reservations(format_reservations(kUnit, s), kUnit, "x");
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(back.value(), s);
}

TEST(ReservationRecord, TheFormatMatchesItsSpecification) {
  ReservationState s;
  s.aptpl = true;
  s.generation = 2;
  s.registrations = {{test_nexus("a"), 0xabc, false, {}}};
  const std::string text = format_reservations("00", s);
  EXPECT_EQ(text.substr(0, text.size() - 16),
            "sluice-reservations 1\nunit 00\ngeneration 2\naptpl 1\ntype 0\n"
            "registration 0000000000000abc 400000370000 1 1 iqn.2026-11.test:a\n");
}

TEST(ReservationRecord, AnyFlippedOrMissingByteIsAnErrorThatNamesTheFile) {
  const std::string good = format_reservations(kUnit, rich_state());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto flipped = parse_reservations(bad, kUnit, "/state/f");
    EXPECT_FALSE(flipped) << at;
    EXPECT_NE(flipped.error().find("/state/f"), std::string::npos);
    EXPECT_FALSE(parse_reservations(good.substr(0, at), kUnit, "/state/f")) << at;
  }
  EXPECT_FALSE(parse_reservations(good + "\n", kUnit, "/state/f"));
}

TEST(ReservationRecord, AnotherVolumesRecordIsRefused) {
  const auto other = parse_reservations(format_reservations("aa", rich_state()), kUnit, "f");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().find("another volume"), std::string::npos) << other.error();
}

TEST(ReservationRecord, AStateThatNoCommandProducesIsRefused) {
  ReservationState s = rich_state();
  s.holder = test_nexus("stranger");
  EXPECT_FALSE(parse_reservations(format_reservations(kUnit, s), kUnit, "f"));
  s = rich_state();
  s.holder.reset();
  EXPECT_FALSE(parse_reservations(format_reservations(kUnit, s), kUnit, "f"));
  s = rich_state();
  s.registrations[0].key = 0;
  EXPECT_FALSE(parse_reservations(format_reservations(kUnit, s), kUnit, "f"));
}

TEST(FileReservationStore, APowerCutAtAnyStepLeavesTheOldOrTheNewRecord) {
  const ReservationState before = rich_state();
  ReservationState after = rich_state();
  after.type = kEa;
  for (int cut = 0; cut <= 3; ++cut) {
    PowerCutFiles::Disk disk;
    {
      FileReservationStore store(std::make_unique<PowerCutFiles>(disk));
      ASSERT_EQ(commit(store, before), CommitOutcome::kCommitted);
      disk.cut_after = disk.steps + cut;
      commit(store, after);
    }
    FileReservationStore restarted(std::make_unique<PowerCutFiles>(disk));
    const auto found = restarted.load(kUnit);
    ASSERT_TRUE(found) << found.error();
    EXPECT_EQ(found.value().type, cut == 3 ? kEa : kWero) << cut;
  }
}

TEST(FileReservationStore, ACommitCompletesOnlyAfterTheDirectoryIsSynced) {
  PowerCutFiles::Disk disk;
  FileReservationStore store(std::make_unique<PowerCutFiles>(disk));
  std::promise<int> steps;
  store.commit(kUnit, rich_state(), kHere,
               [&](CommitOutcome, const std::string&) { steps.set_value(disk.steps); });
  EXPECT_EQ(steps.get_future().get(), 3);
}

TEST(FileReservationStore, ReservationsWithoutAptplAreLostAtPowerLoss) {
  PowerCutFiles::Disk disk;
  FileReservationStore store(std::make_unique<PowerCutFiles>(disk));
  ReservationState s = rich_state();
  s.aptpl = false;
  ASSERT_EQ(commit(store, s), CommitOutcome::kCommitted);
  EXPECT_EQ(read(store).value(), s);
  EXPECT_EQ(store.load(kUnit).value(), ReservationState{});
}

TEST(FileReservationStore, AReadAfterAnUnknownOutcomeReturnsTheRecordOnceItIsDurable) {
  PowerCutFiles::Disk disk;
  FileReservationStore store(std::make_unique<PowerCutFiles>(disk));
  ReservationState after = rich_state();
  after.type = kEa;
  ASSERT_EQ(commit(store, rich_state()), CommitOutcome::kCommitted);
  disk.failing = "sync";  // after the rename: the new record
  ASSERT_EQ(commit(store, after), CommitOutcome::kUnknown);
  EXPECT_FALSE(read(store)) << "it can't be made durable yet";
  EXPECT_EQ(left_by_power_cut(disk).type, kWero);
  disk.failing.clear();
  EXPECT_EQ(read(store).value(), after);
  EXPECT_EQ(left_by_power_cut(disk).type, kEa);
  disk.failing = "rename";  // before it: the old one
  ASSERT_EQ(commit(store, rich_state()), CommitOutcome::kUnknown);
  disk.failing.clear();
  EXPECT_EQ(read(store).value(), after);
}

TEST(FileReservationStore, AReadOfAnUncommittedUnitReturnsAnEmptyState) {
  PowerCutFiles::Disk disk;
  FileReservationStore store(std::make_unique<PowerCutFiles>(disk));
  EXPECT_EQ(read(store).value(), ReservationState{});
  EXPECT_FALSE(read(store, "../x"));
}

TEST(FileReservationStore, AFailureIsReportedAsNotCommittedOnlyBeforeTheRename) {
  PowerCutFiles::Disk disk;
  FileReservationStore store(std::make_unique<PowerCutFiles>(disk));
  disk.failing = "write";
  EXPECT_EQ(commit(store, rich_state()), CommitOutcome::kNotCommitted);
  disk.failing = "rename";
  EXPECT_EQ(commit(store, rich_state()), CommitOutcome::kUnknown);
  disk.failing = "sync";
  EXPECT_EQ(commit(store, rich_state()), CommitOutcome::kUnknown);
  disk.failing.clear();
  EXPECT_EQ(commit(store, rich_state()), CommitOutcome::kCommitted);
}

// A disk that delays the first write until the test releases it.
class StuckFiles : public PowerCutFiles {
 public:
  struct Lever {
    std::promise<void> stuck;
    std::promise<void> go_on;
  };
  StuckFiles(Disk& disk, Lever& lever) : PowerCutFiles(disk), lever_(&lever) {}
  Result<void> write_synced(const std::string& name, std::string_view text) override {
    if (Lever* lever = std::exchange(lever_, nullptr)) {
      lever->stuck.set_value();
      lever->go_on.get_future().wait();
    }
    return PowerCutFiles::write_synced(name, text);
  }

 private:
  Lever* lever_;
};

TEST(FileReservationStore, TheQueueIsBounded) {
  PowerCutFiles::Disk disk;
  StuckFiles::Lever lever;
  FileReservationStore store(std::make_unique<StuckFiles>(disk, lever));
  std::atomic<unsigned> committed = 0;
  const auto count = [&](CommitOutcome o, const std::string&) {
    committed += o == CommitOutcome::kCommitted;
  };
  store.commit(kUnit, {}, kHere, count);
  lever.stuck.get_future().wait();
  for (unsigned i = 0; i < limits::kMaxReservationCommits; ++i) {
    store.commit(kUnit, {}, kHere, count);
  }
  EXPECT_EQ(commit(store, {}), CommitOutcome::kNotCommitted);
  EXPECT_FALSE(read(store));
  lever.go_on.set_value();
  store.stop();
  EXPECT_EQ(committed, limits::kMaxReservationCommits + 1) << "what is queued is written";
}

TEST(FileReservationStore, AHangingDiskLeavesTheCommitUnknownAndQueuedCommitsUncommitted) {
  PowerCutFiles::Disk disk;
  StuckFiles::Lever lever;
  // Time stands until the disk hangs; then every bound is over.
  std::atomic<bool> late = false;
  using Clock = FileReservationStore::Clock;
  const auto now = [&late] { return late ? Clock::time_point::max() : Clock::time_point(); };
  FileReservationStore store(std::make_unique<StuckFiles>(disk, lever), now, kMillisecond);
  std::promise<CommitOutcome> hung, behind;
  std::promise<bool> found;
  store.commit(kUnit, rich_state(), kHere,
               [&](CommitOutcome o, const std::string&) { hung.set_value(o); });
  lever.stuck.get_future().wait();
  store.commit(kUnit, {}, kHere, [&](CommitOutcome o, const std::string&) { behind.set_value(o); });
  store.read(kUnit, kHere, [&](const Result<ReservationState>& s) { found.set_value(s.ok()); });
  late = true;
  EXPECT_EQ(hung.get_future().get(), CommitOutcome::kUnknown);
  EXPECT_EQ(behind.get_future().get(), CommitOutcome::kNotCommitted);
  EXPECT_FALSE(found.get_future().get());
  lever.go_on.set_value();
  store.stop();
  EXPECT_EQ(store.load(kUnit).value(), after_power_loss(rich_state())) << "it came through late";
}

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() {
    char path[] = "/tmp/reservations-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~DirectoryTest() override { std::filesystem::remove_all(directory_); }
  std::string record() const { return directory_ + "/" + kUnit + ".reservations"; }

  std::string directory_;
};

TEST_F(DirectoryTest, ReservationsWithAptplAreRestoredAfterARestart) {
  {
    auto store = FileReservationStore::open(directory_);
    ASSERT_TRUE(store) << store.error();
    EXPECT_EQ(commit(*store.value(), rich_state()), CommitOutcome::kCommitted);
  }
  auto store = FileReservationStore::open(directory_);
  ASSERT_TRUE(store) << store.error();
  const auto state = store.value()->load(kUnit);
  ASSERT_TRUE(state) << state.error();
  EXPECT_EQ(state.value(), after_power_loss(rich_state()));
  EXPECT_EQ(state.value().registrations.size(), 3u);
  EXPECT_EQ(store.value()->load("00").value(), ReservationState{});
}

TEST_F(DirectoryTest, ACorruptRecordIsReportedWithPathAndFix) {
  auto store = FileReservationStore::open(directory_);
  ASSERT_TRUE(store);
  std::ofstream(record()) << "nonsense\n";
  const auto state = store.value()->load(kUnit);
  ASSERT_FALSE(state);
  EXPECT_NE(state.error().find(record()), std::string::npos) << state.error();
  EXPECT_NE(state.error().find("restore"), std::string::npos) << state.error();
}

TEST_F(DirectoryTest, AnUnfinishedRecordBesideTheGoodOneIsIgnoredAndReplaced) {
  auto store = FileReservationStore::open(directory_);
  ASSERT_TRUE(store);
  ASSERT_EQ(commit(*store.value(), rich_state()), CommitOutcome::kCommitted);
  std::ofstream(record() + ".new") << "half a rec";
  EXPECT_TRUE(store.value()->load(kUnit));
  EXPECT_EQ(commit(*store.value(), {}), CommitOutcome::kCommitted);
  EXPECT_EQ(store.value()->load(kUnit).value(), ReservationState{});
}

TEST_F(DirectoryTest, ASecondGatewayIsRefused) {
  auto first = FileReservationStore::open(directory_);
  ASSERT_TRUE(first);
  auto second = FileReservationStore::open(directory_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().find(directory_), std::string::npos);
}

TEST_F(DirectoryTest, AUuidThatIsAPathIsRefused) {
  auto store = FileReservationStore::open(directory_);
  ASSERT_TRUE(store);
  EXPECT_EQ(commit(*store.value(), {}, "../../etc/passwd"), CommitOutcome::kNotCommitted);
  EXPECT_FALSE(store.value()->load("../x"));
}

TEST_F(DirectoryTest, ADirectoryThatCannotBeCreatedIsAnError) {
  EXPECT_FALSE(FileReservationStore::open(directory_ + "/no/such/parent"));
}

}  // namespace
}  // namespace sluice::lun
