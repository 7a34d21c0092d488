#include "admin/health_watch.h"

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/executor.h"
#include "base/log.h"
#include "unit/unit.h"

namespace sluice::admin {
namespace {

constexpr Nanos kPatience = 2 * kSecond;

// Polls one unit and logs what changed.
void check_medium(const std::string& target, const lun::Target::LunEntry& entry) {
  const lun::MediumHealth before = entry.unit->medium_health();
  entry.unit->poll_health();
  const lun::MediumHealth after = entry.unit->medium_health();
  if (before == after) return;
  if (after == lun::MediumHealth()) {
    log::info("medium is back", {{"target", target}, {"lun", entry.lun}});
  } else {
    log::error(after.ready ? "medium is misplaced" : "medium is gone",
               {{"target", target}, {"lun", entry.lun}, {"error", after.problem}});
  }
}

}  // namespace

// Shared with the tasks: a check that hangs may end after the watch was destroyed.
struct HealthWatch::State : std::enable_shared_from_this<State> {
  State(const lun::Exports& e, Nanos p) : exports(e), period(p) {}

  void next_round() {
    executor.post({"rounds"}, [self = shared_from_this()] { self->round(); }, period);
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
}

HealthWatch::~HealthWatch() { stop(); }

bool HealthWatch::stop() { return state_->executor.stop(kPatience); }

}  // namespace sluice::admin
