#include "admin/health_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "unit/unit.h"

namespace sluice::admin {
namespace {

constexpr auto kPeriod = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::seconds(2);

// Polls one unit and logs what changed.
void check_medium(const lun::Target& target, const lun::Target::LunEntry& entry) {
  const lun::MediumHealth before = entry.unit->medium_health();
  entry.unit->poll_health();
  const lun::MediumHealth after = entry.unit->medium_health();
  if (before == after) return;
  if (after == lun::MediumHealth()) {
    log::info("medium is back", {{"target", target.iqn()}, {"lun", entry.lun}});
  } else {
    log::error(after.ready ? "medium is misplaced" : "medium is gone",
               {{"target", target.iqn()}, {"lun", entry.lun}, {"error", after.problem}});
  }
}

}  // namespace

struct HealthWatch::State {
  const lun::Exports& exports;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  bool ended = false;
  std::thread thread;

  explicit State(const lun::Exports& e) : exports(e) {}

  void run() {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kPeriod, [this] { return stopping; })) {
      lock.unlock();
      check_media(exports);
      lock.lock();
    }
    ended = true;
    changed.notify_all();
  }
};

void check_media(const lun::Exports& exports) {
  for (const auto& target : exports.all()) {
    for (const auto& entry : target->luns()) check_medium(*target, entry);
  }
}

HealthWatch::HealthWatch(const lun::Exports& exports) : state_(std::make_unique<State>(exports)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

HealthWatch::~HealthWatch() {
  if (stop()) return;
  state_->thread.detach();
  [[maybe_unused]] State* abandoned = state_.release();  // its thread uses it still
}

bool HealthWatch::stop() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  if (!state_->changed.wait_for(lock, kPatience, [this] { return state_->ended; })) return false;
  lock.unlock();
  if (state_->thread.joinable()) state_->thread.join();
  return true;
}

}  // namespace sluice::admin
