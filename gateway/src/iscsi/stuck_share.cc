#include "iscsi/stuck_share.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "base/safety_mutation.h"
#include "unit/unit.h"

namespace sluice::iscsi {
namespace {

bool at_stuck_unit(const Task& task) {
  const lun::CommandContext* itl = task.command.itl;
  return task.begun() && itl && itl->unit().stuck();
}

// Unsolicited data of commands in the window may use half of the session's memory. That of commands
// whose number was freed may use a quarter, so a quarter stays for R2Ts (R14).
constexpr size_t kSetAsideBytes = limits::kSessionMemory / 4;

}  // namespace

StuckShare::StuckShare(SessionTasks& tasks, lun::NexusContext* nexus)
    : tasks_(tasks), nexus_(nexus) {}

void StuckShare::update() {
  if (!nexus_ || mutation_disables(Guard::kStuckShare)) return;
  const uint32_t share = tasks_.window_size() / 2;
  lun::StuckAdmission& admission = nexus_->stuck_admission;
  // With so few tasks a search is not necessary: these and as many again are within the share.
  if (tasks_.in_use() <= share / 2) {
    admission = {.limit = share - share / 2};
    return;
  }
  uint32_t at_stuck_units = 0;
  uint32_t in_window = 0;
  size_t set_aside_bytes = 0;
  std::vector<Task*> numbered;
  tasks_.for_each([&](Task* task) {
    if (!at_stuck_unit(*task)) return;
    ++at_stuck_units;
    if (task->slot == Task::Slot::kSetAside) set_aside_bytes += task->charged;
    if (task->slot != Task::Slot::kWindow) return;
    ++in_window;
    if (in_window > share) numbered.push_back(task);
  });
  for (Task* task : numbered) {
    if (!tasks_.may_set_aside()) break;
    if (set_aside_bytes + task->charged > kSetAsideBytes) continue;
    set_aside_bytes += task->charged;
    tasks_.set_aside(task);
  }
  admission = {.limit = share, .counted = at_stuck_units};
}

}  // namespace sluice::iscsi
