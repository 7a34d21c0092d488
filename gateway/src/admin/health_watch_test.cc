#include "admin/health_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/lun_report.h"
#include "base/log.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::admin {
namespace {

class NoReactors final : public Reactors {
 public:
  unsigned count() const override { return 1; }
  unsigned current() const override { return 1; }
  void post(unsigned, std::function<void()>) override {}
};

// A medium that can be taken out.
class Removable final : public backend::Backend {
 public:
  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return 1 << 20; }
  bool submit(backend::Io& io, Aio&) override {
    io.result = -EIO;
    return true;
  }
  bool write_cache() const override { return false; }
  Result<void> set_write_cache(bool) override { return {}; }
  Result<backend::Extent> allocation(uint64_t, uint64_t limit) const override {
    return backend::Extent{.length = limit, .allocated = true};
  }
  Result<void> resize(uint64_t) override { return {}; }
  Result<void> check() override {
    if (checked) checked();
    if (present) return {};
    return Error{"gone"};
  }
  std::string hangs_with() const override { return group; }
  std::string location_problem() const override { return elsewhere; }

  bool present = true;
  std::string elsewhere;
  std::string group;
  std::function<void()> checked;  // called by each check

 private:
  backend::Info info_;
};

class Health : public testing::Test {
 protected:
  void SetUp() override {
    auto backend = std::make_unique<Removable>();
    medium_ = backend.get();
    lun::UnitIdentity identity;
    identity.uuid[15] = 9;
    auto target = std::make_shared<lun::Target>("iqn.2026-11.example:t", "", 1);
    target->set_luns(
        {{.lun = 4, .unit = std::make_shared<lun::Unit>(identity, std::move(backend), 1, nullptr)}},
        reactors_);
    exports_.add(target);
    log::start({.level = log::Level::kInfo,
                .format = log::Format::kText,
                .sink = [this](std::string_view line) {
                  const std::lock_guard lock(mutex_);
                  lines_.emplace_back(line);
                  logged_.notify_all();
                }});
  }
  void TearDown() override { log::stop(); }
  void until_logged(std::string_view text) {
    std::unique_lock lock(mutex_);
    const auto has = [text](const std::string& line) {
      return line.find(text) != std::string::npos;
    };
    EXPECT_TRUE(logged_.wait_for(lock, std::chrono::minutes(1), [&] {
      return std::ranges::any_of(lines_, has);
    })) << text;
  }
  std::string state() const { return lun_views(exports_).at(0).state; }

  Removable* medium_ = nullptr;  // the unit's
  NoReactors reactors_;
  lun::Exports exports_;
  std::mutex mutex_;
  std::condition_variable logged_;
  std::vector<std::string> lines_;
};

TEST_F(Health, ALunWithAVanishedMediumIsNotReadyUntilTheMediumReturns) {
  check_media(exports_);
  EXPECT_EQ(state(), "ready");
  medium_->present = false;
  check_media(exports_);
  check_media(exports_);
  EXPECT_EQ(state(), "not-ready");
  medium_->present = true;
  check_media(exports_);
  EXPECT_EQ(state(), "ready");
  log::stop();
  ASSERT_EQ(lines_.size(), 2u) << "changes are logged, states are not";
  EXPECT_NE(lines_[0].find("error   medium is gone target=iqn.2026-11.example:t lun=4 error=gone"),
            std::string::npos)
      << lines_[0];
  EXPECT_NE(lines_[1].find("info    medium is back"), std::string::npos) << lines_[1];
}

TEST_F(Health, AMisplacedMediumStaysReadyAndIsLoggedOnce) {
  medium_->elsewhere = "its file was replaced";
  check_media(exports_);
  check_media(exports_);
  EXPECT_EQ(state(), "ready");
  medium_->elsewhere.clear();
  check_media(exports_);
  log::stop();
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_NE(lines_[0].find("medium is misplaced"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[0].find("its file was replaced"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[1].find("info    medium is back"), std::string::npos) << lines_[1];
}

TEST_F(Health, TheWatchStopsOnRequestAndMayBeStoppedTwice) {
  HealthWatch watch(exports_);
  EXPECT_TRUE(watch.stop());
  EXPECT_TRUE(watch.stop()) << "twice";
}

// Counts checks.
class Checks {
 public:
  void add() {
    ++count_;
    count_.notify_all();
  }
  void wait_for(int count) const {
    for (int now = count_; now < count; now = count_) count_.wait(now);
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
};

TEST_F(Health, AHangingMediumDelaysOnlyTheUnitsThatHangWithIt) {
  std::latch go(1);
  Checks hanging, beside, other;
  std::vector<lun::Target::LunEntry> luns;
  const auto add = [&](const std::string& group, std::function<void()> checked) {
    auto backend = std::make_unique<Removable>();
    backend->group = group;
    backend->checked = std::move(checked);
    lun::UnitIdentity identity;
    identity.uuid[15] = static_cast<uint8_t>(luns.size());
    luns.push_back({.lun = luns.size(),
                    .unit = std::make_shared<lun::Unit>(identity, std::move(backend), 1, nullptr)});
  };
  add("device 8:1", [&] {
    hanging.add();
    go.wait();
  });
  add("device 8:1", [&] { beside.add(); });
  add("device 8:2", [&] { other.add(); });
  exports_.find("iqn.2026-11.example:t")->set_luns(luns, reactors_);
  HealthWatch watch(exports_, kMillisecond);
  hanging.wait_for(1);
  other.wait_for(other.count() + 3);
  EXPECT_EQ(hanging.count(), 1) << "checked again before the check returned";
  EXPECT_EQ(beside.count(), 0);
  go.count_down();
  beside.wait_for(1);
  hanging.wait_for(2);
  EXPECT_TRUE(watch.stop());
}

// The check of the medium hangs, too, and delays no report.
TEST_F(Health, OneLineReportsAllStuckUnitsOfAMediumAndOneThatItContinues) {
  std::latch go(1);
  std::vector<lun::Target::LunEntry> luns;
  for (uint8_t i = 0; i < 3; ++i) {
    auto backend = std::make_unique<Removable>();
    backend->group = "device 8:1";
    backend->checked = [&go] { go.wait(); };
    lun::UnitIdentity identity;
    identity.uuid[15] = i;
    luns.push_back(
        {.lun = i, .unit = std::make_shared<lun::Unit>(identity, std::move(backend), 1, nullptr)});
  }
  exports_.find("iqn.2026-11.example:t")->set_luns(luns, reactors_);
  const auto counters = [&](size_t lun) -> auto& { return luns[lun].unit->statistics().shard(0); };
  for (const size_t lun : {0, 1}) luns[lun].unit->statistics().begin_request(counters(lun));
  HealthWatch watch(exports_);
  until_logged("a medium is stuck");
  EXPECT_TRUE(luns[1].unit->stuck());
  EXPECT_EQ(state(), "stuck");
  EXPECT_FALSE(luns[2].unit->stuck());
  for (const size_t lun : {0, 1}) lun::UnitStatistics::end_request(counters(lun), 0);
  until_logged("a medium completes commands again");
  go.count_down();
  EXPECT_TRUE(watch.stop());
  log::stop();
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_NE(lines_[0].find("medium=\"device 8:1\" units=2"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[1].find("medium=\"device 8:1\""), std::string::npos) << lines_[1];
}

TEST_F(Health, ALunViewReportsTargetNumberSizeUuidAndReadOnlyState) {
  const LunView view = lun_views(exports_).at(0);
  EXPECT_EQ(view.target, "iqn.2026-11.example:t");
  EXPECT_EQ(view.lun, 4u);
  EXPECT_EQ(view.size_bytes, 1u << 20);
  EXPECT_EQ(view.uuid, "00000000-0000-0000-0000-000000000009");
  EXPECT_FALSE(view.read_only);
}

}  // namespace
}  // namespace sluice::admin
