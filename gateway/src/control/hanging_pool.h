// A pool whose disk hangs, for tests.
#pragma once

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <utility>

#include "control/volume/storage_pool.h"

namespace sluice::control {

// Tasks that hang until the test releases them.
class Hang {
 public:
  void here() {
    ++begun_;
    begun_.notify_all();
    go_.wait();
  }
  void wait_for(unsigned begun) const {
    for (unsigned now = begun_; now < begun; now = begun_) begun_.wait(now);
  }
  void release() {
    if (!std::exchange(released_, true)) go_.count_down();
  }

 private:
  std::atomic<unsigned> begun_ = 0;
  bool released_ = false;
  std::latch go_{1};
};

// Of a pool whose disk hangs.
class HangingStorage final : public VolumeStorage {
 public:
  explicit HangingStorage(Hang& hang) : hang_(hang) {}
  Opened open(const wire::DesiredVolume&) override { return {.problem = "hangs"}; }
  Result<std::optional<Record>> record() override { return std::optional<Record>(); }
  Result<Claim> claim(const Record&, Outlasts) override { return Claim::kDone; }
  void update(const Record&, std::function<void(Result<void>)> done) override {
    hang_.here();
    done({});
  }
  HolderAnswer ask(const Record&, uint64_t) override { return {}; }
  Result<void> kill(const Record&) override { return {}; }
  Holder self() const override { return {}; }
  int64_t allocated_bytes() const override { return 0; }

 private:
  Hang& hang_;
};

class HangingPool final : public StoragePool {
 public:
  explicit HangingPool(Hang& hang) : hang_(hang) {}
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume&,
                                                    std::function<void()>) override {
    hang_.here();
    return Error{"the disk hung"};
  }
  void run_job(const wire::Job&, const JobServices&,
               std::function<void(JobOutcome)> done) override {
    hang_.here();
    done({});
  }
  void observe(const std::string&, std::function<void(wire::PoolObserved)>) override {
    hang_.here();
  }

 private:
  Hang& hang_;
};

class HangingPools final : public PoolKind {
 public:
  explicit HangingPools(Hang& hang) : hang_(hang) {}
  Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool&,
                                            const PoolServices&) override {
    return std::shared_ptr<StoragePool>(std::make_shared<HangingPool>(hang_));
  }
  bool stop() override { return true; }

 private:
  Hang& hang_;
};

}  // namespace sluice::control
