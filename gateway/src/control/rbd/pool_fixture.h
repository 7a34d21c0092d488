// Several gateways in one process, each with its own pool and clients, over a real Ceph cluster
// (rbd/ceph_fixture.h).
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/test_driver.h"
#include "control/client_commits.h"
#include "control_rbd/rbd_pool.h"
#include "rbd/ceph_fixture.h"

namespace sluice::control {

inline constexpr const char* kVolumeUid = "5f0c7a3e-1111-4222-8333-444455556666";

class PoolTest : public testing::Test {
 protected:
  // Simulates the control plane and the rest of a gateway.
  class Gateway {
   public:
    Gateway(PoolTest& test, const std::string& name, wire::DesiredPool pool) : kind_(rbd_pools()) {
      // A different text is another access, so the gateway gets its own client.
      *pool.mutable_rbd()->mutable_monitors(0) += std::string(++test.gateways_, ' ');
      pool_ = kind_->open(pool, {.commits = commits_, .incarnation = name}).value();
    }
    Gateway(PoolTest& test, const std::string& name) : Gateway(test, name, test.desired()) {}
    ~Gateway() {
      kind_->stop();
      pool_.reset();
    }

    std::shared_ptr<VolumeStorage> storage_of(const wire::DesiredVolume& volume) {
      return pool_->storage_of(volume, [this] { changed(); }).value();
    }
    // Repeats the call until it is not pending.
    VolumeStorage::Opened opened(VolumeStorage& storage, const wire::DesiredVolume& volume) {
      VolumeStorage::Opened opened;
      until([&] {
        opened = storage.open(volume);
        return !opened.pending;
      });
      return opened;
    }
    std::unique_ptr<backend::Backend> open(VolumeStorage& storage,
                                           const wire::DesiredVolume& volume) {
      VolumeStorage::Opened result = opened(storage, volume);
      EXPECT_EQ(result.problem, "");
      return std::move(result.backend);
    }
    std::string problem(VolumeStorage& storage, const wire::DesiredVolume& volume) {
      return opened(storage, volume).problem;
    }
    std::string claim(VolumeStorage& storage, const Record& record) {
      std::string problem;
      until([&] {
        const auto claimed = storage.claim(record, Outlasts::kPowerCut);
        problem = claimed ? "" : claimed.error();
        return !claimed || claimed.value() == VolumeStorage::Claim::kDone;
      });
      return problem;
    }
    std::string update(VolumeStorage& storage, const Record& record) {
      std::optional<std::string> problem;
      storage.update(record, [&](const Result<void>& done) {
        const std::lock_guard lock(mutex_);
        problem = done ? "" : done.error();
        ++changes_;
        changed_.notify_all();
      });
      until([&] {
        const std::lock_guard lock(mutex_);
        return problem.has_value();
      });
      return *problem;
    }
    JobOutcome run(const wire::Job& job) {
      std::optional<JobOutcome> outcome;
      const JobServices services{.between = {}, .progress = [this](uint32_t permille) {
                                   const std::lock_guard lock(mutex_);
                                   progress_.push_back(permille);
                                   ++changes_;
                                   changed_.notify_all();
                                 }};
      pool_->run_job(job, services, [&](JobOutcome ended) {
        const std::lock_guard lock(mutex_);
        outcome = std::move(ended);
        ++changes_;
        changed_.notify_all();
      });
      until([&] {
        const std::lock_guard lock(mutex_);
        return outcome.has_value();
      });
      return *outcome;
    }
    // The result of a probe that begins now; the first answer may be of an earlier probe.
    wire::PoolObserved observe() {
      static_cast<void>(next_answer());
      return next_answer();
    }
    void expect(const wire::DesiredPool& pool) { pool_->expect(pool); }
    std::string look() {
      std::optional<std::string> problem;
      pool_->observe("pool", [&, this](const wire::PoolObserved& observed) {
        const std::lock_guard lock(mutex_);
        if (problem) return;
        problem = observed.problem();
        ++changes_;
        changed_.notify_all();
      });
      until([&] {
        const std::lock_guard lock(mutex_);
        return problem.has_value();
      });
      pool_->observe("pool", [](const wire::PoolObserved&) {});
      return *problem;
    }
    // Does `something` during a probe, and waits until the pool reports no problem.
    void look_meanwhile(const std::function<void()>& something) {
      // Shared, because a probe may still run when this returns.
      const auto last = std::make_shared<std::optional<std::string>>();
      pool_->observe("pool", [last, this](const wire::PoolObserved& observed) {
        const std::lock_guard lock(mutex_);
        *last = observed.problem();
        ++changes_;
        changed_.notify_all();
      });
      something();
      until([&] {
        const std::lock_guard lock(mutex_);
        return *last == "";
      });
    }
    // Waits for at most a minute; checks again after each event.
    template <class Condition>
    void until(Condition holds) {
      for (int i = 0; i < 600; ++i) {
        unsigned seen = 0;
        {
          const std::lock_guard lock(mutex_);
          seen = changes_;
        }
        if (holds()) return;
        pool_->tick();
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return changes_ != seen; });
      }
      FAIL() << "it has not come true";
    }

    void lose_stream() {
      stream_ = false;
      commits_.lost();
    }
    void reconnect() {
      lose_stream();
      stream_ = true;
      commits_.connected();
    }
    // Clients for which recording was requested, in order, each once.
    std::vector<std::string> asked() {
      const std::lock_guard lock(mutex_);
      return asked_;
    }

    // Of jobs, in the order of the reports.
    std::vector<uint32_t> progress() {
      const std::lock_guard lock(mutex_);
      return progress_;
    }

    std::atomic<wire::CommitResult> answers = wire::COMMIT_RESULT_COMMITTED;

   private:
    wire::PoolObserved next_answer() {
      // Shared, because an earlier probe may still answer when this returns.
      const auto found = std::make_shared<std::optional<wire::PoolObserved>>();
      pool_->observe("pool", [found, this](const wire::PoolObserved& observed) {
        const std::lock_guard lock(mutex_);
        if (observed.problem().find("has not answered") != std::string::npos) return;
        *found = observed;
        ++changes_;
        changed_.notify_all();
      });
      wire::PoolObserved answer;
      until([&] {
        const std::lock_guard lock(mutex_);
        if (*found) answer = **found;
        return found->has_value();
      });
      return answer;
    }
    void changed() {
      const std::lock_guard lock(mutex_);
      ++changes_;
      changed_.notify_all();
    }
    bool request(const wire::RadosClientCommit& commit) {
      if (!stream_) return false;
      {
        const std::lock_guard lock(mutex_);
        if (asked_.empty() || asked_.back() != commit.client()) asked_.push_back(commit.client());
      }
      wire::RadosClientOutcome outcome;
      outcome.set_request_id(commit.request_id());
      outcome.set_result(answers);
      if (answers != wire::COMMIT_RESULT_UNSPECIFIED) commits_.received(outcome);
      changed();
      return true;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned changes_ = 0;
    std::vector<std::string> asked_;
    std::vector<uint32_t> progress_;
    std::atomic<bool> stream_ = true;
    ClientCommits commits_{
        [this](const wire::ConnectRequest& m) { return request(m.rados_client_commit()); }};
    std::shared_ptr<PoolKind> kind_;
    std::shared_ptr<StoragePool> pool_;
  };

  void SetUp() override {
    ASSERT_NE(ceph_.pool(), nullptr);
    ASSERT_TRUE(ceph_.images().create("other", {.size = rbd::kImageSize, .data_pool = ""}).ok());
  }

  wire::DesiredPool desired() const {
    wire::DesiredPool pool;
    pool.set_uid("pool");
    wire::DesiredRbdPool& rbd = *pool.mutable_rbd();
    rbd.add_monitors(setting("ceph.conf", "mon_host"));
    rbd.set_user("gateway");
    rbd.set_key(setting("gateway.keyring", "key"));
    rbd.set_pool("rbd");
    rbd.set_rados_namespace(ceph_.space());
    return pool;
  }
  static wire::DesiredVolume volume(uint64_t order, const std::string& image = "disk") {
    wire::DesiredVolume volume;
    volume.set_uid(kVolumeUid);
    volume.set_epoch(order);
    volume.set_order(order);
    volume.set_location(image);
    volume.set_size_bytes(rbd::kImageSize);
    volume.set_block_size(512);
    return volume;
  }
  static Record record(uint64_t epoch, const std::string& gateway) {
    Record record;
    record.volume = kVolumeUid;
    record.epoch = epoch;
    record.order = epoch;
    record.holder.incarnation = gateway;
    return record;
  }
  static wire::Job fence_job(const std::vector<std::string>& clients) {
    wire::Job job;
    for (const std::string& client : clients) job.mutable_fence_clients()->add_clients(client);
    job.mutable_fence_clients()->set_expire_seconds(rbd::RadosClient::kForGood);
    return job;
  }
  // The owner of the image's lock.
  std::string owner(const std::string& image = "disk") {
    auto opened = ceph_.images().open(image);
    return opened ? (*opened)->lock_owner() : opened.error();
  }

  rbd::CephNamespace ceph_;

 private:
  // `name = value` from a file of the cluster.
  static std::string setting(const std::string& file, const std::string& name) {
    std::ifstream in(rbd::ceph_folder() + '/' + file);
    for (std::string line; std::getline(in, line);) {
      const size_t begin = line.find_first_not_of(" \t");
      if (begin == std::string::npos || line.compare(begin, name.size(), name) != 0) continue;
      const size_t equals = line.find('=');
      if (equals == std::string::npos) continue;
      return line.substr(line.find_first_not_of(" \t", equals + 1));
    }
    ADD_FAILURE() << file << " says no " << name;
    return "";
  }

  size_t gateways_ = 0;
};

}  // namespace sluice::control
