#include "admin/health_watch.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/boot_clock.h"
#include "base/executor.h"
#include "base/limits.h"
#include "base/log.h"
#include "unit/unit.h"

namespace sluice::admin {
namespace {

constexpr Nanos kPatience = 2 * kSecond;

// Polls one unit and logs what changed.
void check_medium(const std::string& target, const lun::Target::LunEntry& entry) {
  lun::MediumHealth before = entry.unit->medium_health();
  entry.unit->poll_health();
  lun::MediumHealth after = entry.unit->medium_health();
  before.stuck = after.stuck = false;    // of StuckMedia
  before.errors = after.errors = false;  // of commands/medium_log.h
  if (before == after) return;
  if (after == lun::MediumHealth()) {
    log::info("medium is back", {{"target", target}, {"lun", entry.lun}});
  } else {
    log::error(after.ready ? "medium is misplaced" : "medium is gone",
               {{"target", target}, {"lun", entry.lun}, {"error", after.problem}});
  }
}

// The media with units that are stuck. A disk that hangs stops many units: one line reports the
// begin of that, and one its end.
class StuckMedia {
 public:
  void check(const lun::Exports& exports, Nanos now) {
    std::map<std::string, std::set<const lun::Unit*>> found;
    std::map<std::string, std::string> first;  // unit of each medium
    for (const auto& target : exports.all()) {
      for (const auto& entry : target->luns()) {
        entry.unit->poll_progress(now);
        if (!entry.unit->medium_hangs()) continue;
        std::string medium = entry.unit->shared_backend()->hangs_with();
        if (medium.empty()) medium = entry.unit->uuid_text();
        first.try_emplace(medium, entry.unit->uuid_text());
        found[medium].insert(entry.unit.get());
      }
    }
    for (const auto& [medium, units] : found) {
      if (stuck_.contains(medium)) continue;
      log::error(
          "a medium is stuck: it completes none of its commands, or one of them takes more than 10 "
          "s",
          {{"medium", medium}, {"units", units.size()}, {"unit", first[medium]}});
    }
    for (const auto& [medium, units] : stuck_) {
      if (!found.contains(medium)) {
        log::info("a medium completes commands again", {{"medium", medium}});
      }
    }
    stuck_ = std::move(found);
  }

 private:
  std::map<std::string, std::set<const lun::Unit*>> stuck_;
};

}  // namespace

// Shared with the tasks: a check that hangs may end after the watch was destroyed.
struct HealthWatch::State : std::enable_shared_from_this<State> {
  State(const lun::Exports& e, Nanos p) : exports(e), period(p) {}

  void next_round() {
    executor.post({"rounds"}, [self = shared_from_this()] { self->round(); }, period);
  }

  void next_progress() {
    executor.post(
        {"progress"}, [self = shared_from_this()] { self->check_progress(); },
        std::min(period, limits::kStuckPoll));
  }

  void check_progress() {
    stuck.check(exports, boot_clock_now());
    next_progress();
  }

  void round() {
    for (const auto& target : exports.all()) {
      for (const auto& entry : target->luns()) begin(target->iqn(), entry);
    }
    next_round();
  }

  void begin(const std::string& target, const lun::Target::LunEntry& entry) {
    const std::string group = entry.unit->shared_backend()->hangs_with();
    if (group.empty()) return check_medium(target, entry);
    {
      const std::lock_guard lock(mutex);
      if (!under_way.insert(entry.unit.get()).second) return;
    }
    executor.post({group}, [self = shared_from_this(), target, entry] {
      check_medium(target, entry);
      const std::lock_guard lock(self->mutex);
      self->under_way.erase(entry.unit.get());
    });
  }

  const lun::Exports& exports;
  const Nanos period;
  StuckMedia stuck;  // of check_progress()
  std::mutex mutex;
  std::set<const lun::Unit*> under_way;  // queued or running; the task keeps the unit
  Executor executor{{.threads = 1, .destructor_waits = 0}};
};

void check_media(const lun::Exports& exports) {
  for (const auto& target : exports.all()) {
    for (const auto& entry : target->luns()) check_medium(target->iqn(), entry);
  }
}

HealthWatch::HealthWatch(const lun::Exports& exports, Nanos period)
    : state_(std::make_shared<State>(exports, period)) {
  state_->next_round();
  state_->next_progress();
}

HealthWatch::~HealthWatch() { stop(); }

bool HealthWatch::stop() { return state_->executor.stop(kPatience); }

}  // namespace sluice::admin
