#include "control/local/quiesce.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "unit/ranges/range_table.h"

namespace sluice::control {
namespace {

constexpr unsigned kReactor = 0;  // any reactor would do; the hold stays on it

// Shared by the waiting thread and the reactor, so that either may end first.
struct Pause {
  std::shared_ptr<lun::Unit> unit;
  Reactors* reactors = nullptr;
  lun::RangeHold hold;  // used by the reactor
  std::mutex mutex;
  std::condition_variable changed;
  bool granted = false;

  void grant() {
    const std::lock_guard lock(mutex);
    granted = true;
    changed.notify_all();
  }
};

void begin(const std::shared_ptr<Pause>& pause) {
  lun::RangeHold& hold = pause->hold;
  hold.last = pause->unit->blocks() - 1;
  hold.exclusive = true;
  hold.context = pause.get();
  hold.on_grant = [](lun::RangeHold& h) { static_cast<Pause*>(h.context)->grant(); };
  if (pause->unit->ranges().acquire(kReactor, hold, pause->reactors)) pause->grant();
}

}  // namespace

Result<void> between_commands(const std::shared_ptr<lun::Unit>& unit, Reactors& reactors,
                              Nanos patience, const std::function<void()>& task) {
  const auto pause = std::make_shared<Pause>();
  pause->unit = unit;
  pause->reactors = &reactors;
  reactors.post(kReactor, [pause] { begin(pause); });
  bool granted = false;
  {
    std::unique_lock lock(pause->mutex);
    granted = pause->changed.wait_for(lock, std::chrono::nanoseconds(patience),
                                      [&] { return pause->granted; });
  }
  if (granted) task();
  // Posted after begin(), so it runs after it. A hold that still waits is withdrawn.
  reactors.post(kReactor,
                [pause] { pause->unit->ranges().cancel(kReactor, pause->hold, pause->reactors); });
  if (granted) return {};
  return Error{"the volume's commands didn't pause in time; try again when it is less busy"};
}

}  // namespace sluice::control
