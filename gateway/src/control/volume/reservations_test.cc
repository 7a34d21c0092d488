#include "control/volume/reservations.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>

#include "base/limits.h"
#include "control/test_objects.h"
#include "unit/reservations/reservation_store.h"

namespace sluice::control {
namespace {

using lun::CommitOutcome;

// Runs posted tasks when the test calls it; several threads post.
class QueuedReactors final : public Reactors {
 public:
  unsigned count() const override { return 1; }
  unsigned current() const override { return 1; }
  void post(unsigned, std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void run_one() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !tasks_.empty(); }));
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
};

class RecordOnlyStorage final : public VolumeStorage {
 public:
  Opened open(const wire::DesiredVolume&) override { return {}; }
  Result<std::optional<Record>> record() override { return std::optional(record_); }
  Result<Claim> claim(const Record&, Outlasts) override { return Claim::kDone; }
  void update(const Record& record, std::function<void(Result<void>)> done) override {
    if (!problem.empty()) return done(Error{problem});
    record_ = record;
    done({});
  }
  HolderAnswer ask(const Record&, uint64_t) override { return {}; }
  Result<void> kill(const Record&) override { return {}; }
  Holder self() const override { return {}; }
  int64_t allocated_bytes() const override { return 0; }

  bool reserves_room() const override { return reserve_.operator bool(); }
  Result<Room> reserve(const Record& record) override { return reserve_(record); }

  std::string problem;
  std::function<Result<Room>(const Record&)> reserve_;  // empty: it always has room
  Record record_;
};

class ReservationsTest : public testing::Test {
 protected:
  ReservationsTest() {
    Record record;
    record.volume = kVolumeUid;
    record.epoch = 7;
    record.generation = 3;
    store_.open(record, storage_, "pool");
  }
  ~ReservationsTest() override {
    store_.stop();
    executor_.stop();
  }

  static lun::ReservationState state(uint32_t generation) {
    lun::ReservationState state;
    state.generation = generation;
    return state;
  }
  void commit(uint32_t generation) {
    outcome_.reset();
    store_.commit(kVolumeUid, state(generation), {&reactors_, 0},
                  [this](CommitOutcome outcome, const std::string& error) {
                    outcome_ = outcome;
                    error_ = error;
                  });
  }
  void answer(wire::CommitResult result) {
    wire::ReservationOutcome outcome;
    outcome.set_request_id(sent_.back().reservation_commit().request_id());
    outcome.set_result(result);
    store_.received(outcome);
  }
  void answer_load(uint64_t generation, uint32_t pr_generation) {
    wire::ReservationState found;
    found.set_request_id(sent_.back().reservation_load().request_id());
    found.set_result(wire::COMMIT_RESULT_COMMITTED);
    found.set_generation(generation);
    found.set_state(lun::format_reservations(kVolumeUid, state(pr_generation)));
    store_.received(found);
  }

  bool connected_ = true;
  Nanos now_ = kSecond;
  std::vector<wire::ConnectRequest> sent_;
  std::vector<std::string> fenced_;
  QueuedReactors reactors_;
  Executor executor_{{.threads = 1}};
  std::shared_ptr<RecordOnlyStorage> storage_ = std::make_shared<RecordOnlyStorage>();
  StreamReservations store_{{.request =
                                 [this](wire::ConnectRequest m) {
                                   if (connected_) sent_.push_back(std::move(m));
                                   return connected_;
                                 },
                             .fenced = [this](const std::string& v) { fenced_.push_back(v); },
                             .executor = executor_,
                             .now = [this] { return now_; }}};
  std::optional<CommitOutcome> outcome_;
  std::string error_;
};

TEST_F(ReservationsTest, ACommittedStateIsStoredAndWrittenToTheRecord) {
  commit(9);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].reservation_commit().expected_generation(), 3u);
  EXPECT_EQ(sent_[0].reservation_commit().epoch(), 7u);
  answer(wire::COMMIT_RESULT_COMMITTED);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kCommitted);
  EXPECT_EQ(storage_->record_.generation, 4u);
  EXPECT_EQ(storage_->record_.reservations.generation, 9u);
  commit(10);
  EXPECT_EQ(sent_[1].reservation_commit().expected_generation(), 4u);
}

TEST_F(ReservationsTest, WithoutAStreamACommitIsReportedAsNotCommitted) {
  connected_ = false;
  commit(9);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kNotCommitted);
}

TEST_F(ReservationsTest, ARefusalByTheControlPlaneIsReportedAsNotCommitted) {
  commit(9);
  answer(wire::COMMIT_RESULT_NOT_COMMITTED);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kNotCommitted);
}

TEST_F(ReservationsTest, AStreamThatEndsDuringACommitLeavesItsOutcomeUnknown) {
  commit(9);
  store_.stream_lost("cut");
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kUnknown);
}

TEST_F(ReservationsTest, ACommitThatExceedsTheTimeLimitHasAnUnknownOutcome) {
  commit(9);
  now_ += limits::kReservationStoreBound;
  store_.tick();
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kUnknown);
}

TEST_F(ReservationsTest, ARecordThatCannotBeWrittenLeavesTheOutcomeUnknown) {
  storage_->problem = "no space";
  commit(9);
  answer(wire::COMMIT_RESULT_COMMITTED);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kUnknown);
  EXPECT_EQ(error_, "no space");
}

// R3: what has no room beside the data is not stored anywhere, so the next owner can write all that
// the control plane has.
TEST_F(ReservationsTest, ACommitWithoutRoomForItsRecordIsNotSent) {
  std::optional<uint32_t> asked;
  storage_->reserve_ = [&](const Record& record) {
    asked = record.reservations.generation;
    return Result<Room>(Room::kNone);
  };
  commit(9);
  reactors_.run_one();
  EXPECT_EQ(asked, 9u);
  EXPECT_EQ(outcome_, CommitOutcome::kNoRoom);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(storage_->record_.generation, 0u);
}

TEST_F(ReservationsTest, ACommitIsNotSentIfRoomCannotBeMadeForAnotherReason) {
  storage_->reserve_ = [](const Record&) { return Result<Room>(Error{"the disk is broken"}); };
  commit(9);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kNotCommitted);
  EXPECT_EQ(error_, "the disk is broken");
  EXPECT_TRUE(sent_.empty());
}

TEST_F(ReservationsTest, ACommitThatWaitsTooLongForRoomIsNotSentLater) {
  std::promise<void> hang;
  std::promise<void> asked;
  storage_->reserve_ = [&, hangs = std::shared_future(hang.get_future())](const Record&) {
    asked.set_value();
    hangs.wait();
    return Result<Room>(Room::kMade);
  };
  commit(9);
  asked.get_future().wait();
  now_ += limits::kReservationStoreBound;
  store_.tick();
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kNotCommitted);
  hang.set_value();
  executor_.stop();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(ReservationsTest, ANewerEpochFencesTheVolume) {
  commit(9);
  answer(wire::COMMIT_RESULT_FENCED);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kUnknown);
  EXPECT_EQ(fenced_, std::vector<std::string>{kVolumeUid});
}

TEST_F(ReservationsTest, AReadAfterAnUnknownOutcomePreventsALateCommit) {
  commit(9);
  store_.stream_lost("cut");
  reactors_.run_one();
  std::optional<uint32_t> read;
  store_.read(kVolumeUid, {&reactors_, 0}, [&](const Result<lun::ReservationState>& found) {
    ASSERT_TRUE(found) << found.error();
    read = found.value().generation;
  });
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(sent_[1].has_reservation_load());
  answer_load(3, 8);
  ASSERT_EQ(sent_.size(), 3u) << "stored once more, so that the straggler conflicts";
  EXPECT_EQ(sent_[2].reservation_commit().expected_generation(), 3u);
  answer(wire::COMMIT_RESULT_CONFLICT);  // the late commit arrived first
  ASSERT_EQ(sent_.size(), 4u);
  answer_load(4, 9);
  ASSERT_EQ(sent_.size(), 5u);
  answer(wire::COMMIT_RESULT_COMMITTED);
  reactors_.run_one();
  EXPECT_EQ(read, 9u);
  EXPECT_EQ(storage_->record_.generation, 5u);
  EXPECT_EQ(storage_->record_.reservations.generation, 9u);
}

TEST_F(ReservationsTest, ARestoredStoreReceivesTheStateCommittedSinceItsBackup) {
  commit(9);
  answer(wire::COMMIT_RESULT_COMMITTED);
  reactors_.run_one();
  ASSERT_EQ(outcome_, CommitOutcome::kCommitted);
  commit(10);
  answer(wire::COMMIT_RESULT_CONFLICT);  // the store was restored
  reactors_.run_one();
  ASSERT_EQ(outcome_, CommitOutcome::kUnknown);
  std::optional<uint32_t> read;
  store_.read(kVolumeUid, {&reactors_, 0}, [&](const Result<lun::ReservationState>& found) {
    ASSERT_TRUE(found) << found.error();
    read = found.value().generation;
  });
  answer_load(2, 1);
  ASSERT_TRUE(sent_.back().has_reservation_commit());
  EXPECT_EQ(sent_.back().reservation_commit().expected_generation(), 2u);
  EXPECT_EQ(sent_.back().reservation_commit().state(),
            lun::format_reservations(kVolumeUid, state(9)));
  EXPECT_FALSE(read) << "before it is stored";
  answer(wire::COMMIT_RESULT_COMMITTED);
  reactors_.run_one();
  EXPECT_EQ(read, 9u);
  EXPECT_EQ(storage_->record_.generation, 3u);
  EXPECT_EQ(storage_->record_.reservations.generation, 9u);
}

TEST_F(ReservationsTest, ANewerRecordIsStoredBeforeTheNewOwnerServesIt) {
  Record beside;
  beside.volume = kVolumeUid;
  beside.epoch = 6;
  beside.generation = 6;
  beside.reservations = state(42);
  std::optional<Loaded> loaded;
  store_.load_for(beside, 7, false, [&](Loaded l) { loaded = std::move(l); });
  answer_load(5, 1);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(sent_.back().reservation_commit().expected_generation(), 5u);
  EXPECT_EQ(sent_.back().reservation_commit().epoch(), 7u);
  answer(wire::COMMIT_RESULT_COMMITTED);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->what, Loaded::What::kState);
  EXPECT_EQ(loaded->generation, 6u);
  EXPECT_EQ(loaded->state.generation, 42u);

  beside.generation = 5;  // the store has the same generation, so its state counts
  store_.load_for(beside, 7, false, [&](Loaded l) { loaded = std::move(l); });
  answer_load(5, 1);
  EXPECT_EQ(loaded->state.generation, 1u);
}

TEST_F(ReservationsTest, ALateAnswerDoesNotChangeTheRecord) {
  commit(9);
  now_ += limits::kReservationStoreBound;
  store_.tick();
  reactors_.run_one();
  answer(wire::COMMIT_RESULT_COMMITTED);
  EXPECT_EQ(storage_->record_.generation, 0u);
}

TEST_F(ReservationsTest, ACommitForAVolumeThatIsNotOpenIsRefused) {
  store_.close(kVolumeUid);
  commit(9);
  reactors_.run_one();
  EXPECT_EQ(outcome_, CommitOutcome::kNotCommitted);
}

}  // namespace
}  // namespace sluice::control
