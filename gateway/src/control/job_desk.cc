#include "control/job_desk.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "control/local/quiesce.h"

namespace sluice::control {
namespace {

constexpr Nanos kPausePatience = 5 * kSecond;  // of a volume's commands, for a snapshot

std::string lane_of(const wire::Job& job) { return "jobs of " + job.pool_uid(); }

}  // namespace

void JobDesk::take(const wire::Job& job) {
  {
    const std::lock_guard lock(mutex_);
    // One that is under way already, or one too many: the control plane sends it again.
    if (jobs_.size() >= limits::kMaxJobs || !jobs_.insert(job.id()).second) return;
  }
  setup_.turns.post(lane_of(job), [this, job] { begin(job); });
}

void JobDesk::begin(const wire::Job& job) {
  const Result<std::shared_ptr<StoragePool>> pool = setup_.volumes.pool(job.pool_uid());
  if (!pool) return done(job.id(), {.problem = pool.error()});
  const JobServices services{
      .between = [this](const std::string& volume,
                        const std::function<void()>& task) { return between(volume, task); },
      .progress = [this, id = job.id()](uint32_t permille) { goes_on(id, permille); },
      .again = [this, lane = lane_of(job)](
                   std::function<void()> task) { setup_.turns.post(lane, std::move(task)); }};
  pool.value()->run_job(job, services,
                        [this, id = job.id()](const JobOutcome& outcome) { done(id, outcome); });
}

// Never the end: that is done()'s.
void JobDesk::goes_on(const std::string& id, uint32_t permille) {
  wire::JobResult result;
  result.set_id(id);
  result.set_done_permille(std::min<uint32_t>(permille, 999));
  setup_.tell(result);
}

void JobDesk::done(const std::string& id, const JobOutcome& outcome) {
  log::info("job", {{"id", id}, {"problem", outcome.problem}});
  {
    const std::lock_guard lock(mutex_);
    jobs_.erase(id);
  }
  wire::JobResult result;
  result.set_id(id);
  result.set_done_permille(1000);
  result.set_problem(outcome.problem);
  result.set_unsupported(outcome.unsupported);
  result.set_size_bytes(outcome.size_bytes);
  result.mutable_images()->Add(outcome.images.begin(), outcome.images.end());
  setup_.tell(result);
}

Result<void> JobDesk::between(const std::string& volume, const std::function<void()>& task) {
  const std::shared_ptr<lun::Unit> unit = setup_.volumes.unit(volume);
  // Between its own commands is not between the owner's.
  if (unit && (unit->gate() & lun::Unit::kElsewhere) != 0 &&
      unit->role().standing != lun::Standing::kUnavailable) {
    return Error{"another gateway owns the volume; its owner takes the snapshot"};
  }
  if (unit) return between_commands(unit, setup_.reactors, kPausePatience, task);
  task();
  return {};
}

}  // namespace sluice::control
