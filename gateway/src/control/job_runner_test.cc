#include "control/job_runner.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <latch>

#include "base/limits.h"
#include "control/client_commits.h"
#include "control/volume/reservations.h"

namespace sluice::control {
namespace {

class NoReactors final : public Reactors {
 public:
  unsigned count() const override { return 0; }
  unsigned current() const override { return 0; }
  void post(unsigned, std::function<void()>) override {}
};

// Records jobs that begin. The test ends them.
class OpenJobs final : public StoragePool {
 public:
  struct Begun {
    wire::Job job;
    std::function<void(uint32_t)> progress;
    std::function<void(JobOutcome)> done;
  };
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume&,
                                                    std::function<void()>) override {
    return Error{"there is none"};
  }
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override {
    const std::lock_guard lock(mutex_);
    begun_.push_back({job, services.progress, std::move(done)});
    changed_.notify_all();
  }
  void observe(const std::string&, std::function<void(wire::PoolObserved)>) override {}

  // The next job that begins; attempt 0 if none begins within `patience`.
  Begun next(std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !begun_.empty(); })) return {};
    Begun first = std::move(begun_.front());
    begun_.pop_front();
    return first;
  }
  // True: no job began although all earlier tasks have run.
  bool idle(Executor& executor) {
    std::mutex mutex;
    std::condition_variable changed;
    bool passed = false;
    executor.post({PoolTable::group_of("pool"), "jobs"}, [&] {
      const std::lock_guard lock(mutex);
      passed = true;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return passed; });
    const std::lock_guard own(mutex_);
    return begun_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Begun> begun_;
};

class OnePool final : public PoolKind {
 public:
  explicit OnePool(std::shared_ptr<OpenJobs> pool) : pool_(std::move(pool)) {}
  Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool&,
                                            const PoolServices&) override {
    return std::shared_ptr<StoragePool>(pool_);
  }
  bool stop() override { return true; }

 private:
  const std::shared_ptr<OpenJobs> pool_;
};

class JobRunnerTest : public testing::Test {
 protected:
  JobRunnerTest() {
    wire::DesiredPool pool;
    pool.set_uid("pool");
    pool.mutable_rbd();
    EXPECT_TRUE(volumes_.put_pool(pool));
  }
  ~JobRunnerTest() override { executor_.stop(); }

  static wire::Job resize(uint64_t attempt, int64_t size, const std::string& id = "u.resize") {
    wire::Job job;
    job.set_id(id);
    job.set_pool_uid("pool");
    job.set_attempt(attempt);
    job.mutable_resize()->set_size_bytes(size);
    return job;
  }
  // The reported results, as "attempt permille problem".
  std::vector<std::string> reports() {
    const std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }

  NoReactors reactors_;
  Executor executor_{{.threads = 2}};
  const std::shared_ptr<StreamReservations> store_ = std::make_shared<StreamReservations>(
      StreamReservations::Setup{.request = [](const wire::ConnectRequest&) { return false; },
                                .fenced = [](const std::string&) {},
                                .executor = executor_});
  ClientCommits commits_{[](const wire::ConnectRequest&) { return false; }};
  const std::shared_ptr<OpenJobs> pool_ = std::make_shared<OpenJobs>();
  Volumes volumes_{{.reactors = reactors_,
                    .executor = executor_,
                    .reservations = store_,
                    .report = [](const wire::VolumeObserved&) {},
                    .services = {.commits = commits_, .incarnation = "i"},
                    .rbd = std::make_shared<OnePool>(pool_),
                    .nearly_full = nullptr}};
  std::mutex mutex_;
  std::vector<std::string> told_;
  JobRunner runner_{{.volumes = volumes_,
                     .executor = executor_,
                     .reactors = reactors_,
                     .report = [this](const wire::JobResult& result) {
                       const std::lock_guard lock(mutex_);
                       told_.push_back(std::to_string(result.attempt()) + ' ' +
                                       std::to_string(result.done_permille()) + ' ' +
                                       result.problem());
                     }}};
};

using Reports = std::vector<std::string>;

TEST_F(JobRunnerTest, TheResultOfAJobNamesItsAttempt) {
  runner_.submit(resize(7, 1));
  const OpenJobs::Begun begun = pool_->next();
  begun.progress(500);
  begun.done({.problem = "no space"});
  EXPECT_EQ(reports(), (Reports{"7 500 ", "7 1000 no space"}));
}

TEST_F(JobRunnerTest, ARepeatedAttemptOfARunningJobRunsOnce) {
  runner_.submit(resize(7, 1));
  const OpenJobs::Begun begun = pool_->next();
  runner_.submit(resize(7, 1));
  begun.done({});
  EXPECT_TRUE(pool_->idle(executor_));
  EXPECT_EQ(reports(), Reports{"7 1000 "});
}

// The stream may have ended before its replica stored the result.
TEST_F(JobRunnerTest, ARepeatedAttemptOfAnEndedJobIsAnsweredWithoutRunning) {
  runner_.submit(resize(7, 1));
  pool_->next().done({.problem = "no space"});
  EXPECT_EQ(reports(), Reports{"7 1000 no space"});
  runner_.submit(resize(7, 1));
  EXPECT_TRUE(pool_->idle(executor_));
  EXPECT_EQ(reports(), Reports{"7 1000 no space"});
  runner_.submit(resize(8, 1));
  pool_->next().done({});
  EXPECT_EQ(reports(), Reports{"8 1000 "});
}

// An earlier control plane sends no attempt numbers, so the request may be another attempt with
// other content.
TEST_F(JobRunnerTest, AJobWithoutAnAttemptRunsEachTime) {
  for (int64_t size = 1; size <= 2; ++size) {
    runner_.submit(resize(0, size));
    const OpenJobs::Begun begun = pool_->next();
    EXPECT_EQ(begun.job.resize().size_bytes(), size);
    begun.done({});
  }
  EXPECT_EQ(reports(), (Reports{"0 1000 ", "0 1000 "}));
}

// Blocklist entries expire.
TEST_F(JobRunnerTest, ClientsAreFencedAtEachRequest) {
  wire::Job job = resize(7, 1, "p.fence");
  job.mutable_fence_clients()->add_clients("c");
  for (int times = 0; times < 2; ++times) {
    runner_.submit(job);
    const OpenJobs::Begun begun = pool_->next();
    ASSERT_EQ(begun.job.attempt(), 7u);
    begun.done({});
  }
}

TEST_F(JobRunnerTest, TheNewestOtherAttemptRunsAfterTheRunningOneAndReportsItsOwnResult) {
  runner_.submit(resize(7, 1));
  const OpenJobs::Begun first = pool_->next();
  runner_.submit(resize(3, 2));
  runner_.submit(resize(9, 3));
  EXPECT_TRUE(pool_->idle(executor_)) << "two at once at one image";
  first.done({});
  EXPECT_EQ(reports(), Reports{}) << "of an attempt without a waiter";
  const OpenJobs::Begun second = pool_->next();
  EXPECT_EQ(second.job.attempt(), 9u);
  EXPECT_EQ(second.job.resize().size_bytes(), 3);
  second.done({.problem = "no space"});
  EXPECT_EQ(reports(), Reports{"9 1000 no space"});
  EXPECT_TRUE(pool_->idle(executor_));
}

TEST_F(JobRunnerTest, TheRunningAttemptThatIsRequestedAgainCancelsTheWaitingOne) {
  runner_.submit(resize(7, 1));
  const OpenJobs::Begun begun = pool_->next();
  runner_.submit(resize(8, 2));
  runner_.submit(resize(7, 1));
  begun.done({});
  EXPECT_TRUE(pool_->idle(executor_));
  EXPECT_EQ(reports(), Reports{"7 1000 "});
}

TEST_F(JobRunnerTest, JobsOfAnotherPoolAreAcceptedWhenOneHasItsLimit) {
  for (size_t i = 0; i <= limits::kMaxJobs; ++i) {
    runner_.submit(resize(1, 1, "u" + std::to_string(i)));
  }
  for (size_t i = 0; i < limits::kMaxJobs; ++i) EXPECT_EQ(pool_->next().job.attempt(), 1u);
  wire::Job other = resize(1, 1, "other");
  other.set_pool_uid("unknown");
  runner_.submit(other);
  std::latch ran(1);
  executor_.post({PoolTable::group_of("unknown"), "jobs"}, [&] { ran.count_down(); });
  ran.wait();
  EXPECT_EQ(reports(), Reports{"1 1000 pool unknown is not known to this gateway"});
  EXPECT_TRUE(pool_->idle(executor_)) << "beyond the limit";
}

TEST_F(JobRunnerTest, OnlyTheNewestResultsAreRetained) {
  const auto id = [](size_t i) { return "u" + std::to_string(i) + ".resize"; };
  for (size_t i = 0; i <= limits::kMaxJobs; ++i) {
    runner_.submit(resize(7, 1, id(i)));
    pool_->next().done({});
  }
  reports();
  runner_.submit(resize(7, 1, id(1)));
  EXPECT_TRUE(pool_->idle(executor_));
  EXPECT_EQ(reports(), Reports{"7 1000 "});
  runner_.submit(resize(7, 1, id(0)));
  EXPECT_EQ(pool_->next().job.id(), id(0));
}

}  // namespace
}  // namespace sluice::control
