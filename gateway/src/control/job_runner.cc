#include "control/job_runner.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "control/local/quiesce.h"

namespace sluice::control {
namespace {

// limit for pausing a volume's commands for a snapshot
constexpr Nanos kPausePatience = 5 * kSecond;

Executor::Strand strand_of(const wire::Job& job) {
  return {PoolTable::group_of(job.pool_uid()), "jobs"};
}

}  // namespace

void JobRunner::submit(const wire::Job& job) {
  std::optional<wire::JobResult> lost;
  {
    const std::lock_guard lock(mutex_);
    const auto under_way = jobs_.find(job.id());
    const auto ended = std::ranges::find_if(ended_, [&](const wire::JobResult& result) {
      return result.id() == job.id() && result.attempt() == job.attempt();
    });
    if (under_way != jobs_.end()) {
      std::optional<wire::Job>& next = under_way->second.next;
      next.reset();
      if (under_way->second.attempt != job.attempt()) next = job;
      return;
    }
    if (ended != ended_.end()) {
      lost = *ended;
    } else if (is_full_locked(job.pool_uid())) {
      return;  // the control plane sends it again
    } else {
      jobs_[job.id()] = {.pool = job.pool_uid(), .attempt = job.attempt(), .next = std::nullopt};
    }
  }
  if (lost) return setup_.report(*lost);
  post(job);
}

// A pool that hangs leaves room for the jobs of others.
bool JobRunner::is_full_locked(const std::string& pool) const {
  const auto waiting = std::ranges::count_if(
      jobs_, [&](const auto& under_way) { return under_way.second.pool == pool; });
  return static_cast<size_t>(waiting) >= limits::kMaxJobs;
}

void JobRunner::post(const wire::Job& job) {
  setup_.executor.post(strand_of(job), [this, job] { begin(job); });
}

void JobRunner::begin(const wire::Job& job) {
  const Result<std::shared_ptr<StoragePool>> pool = setup_.volumes.pools().open(job.pool_uid());
  if (!pool) return done(job, {.problem = pool.error()});
  const JobServices services{
      .between = [this](const std::string& volume,
                        const std::function<void(bool)>& task) { return between(volume, task); },
      .progress = [this, job](uint32_t permille) { report_progress(job, permille); },
      .again = [this, strand = strand_of(job)](
                   std::function<void()> task) { setup_.executor.post(strand, std::move(task)); }};
  pool.value()->run_job(job, services,
                        [this, job](const JobOutcome& outcome) { done(job, outcome); });
}

// At most 999: done() reports the end.
void JobRunner::report_progress(const wire::Job& job, uint32_t permille) {
  wire::JobResult result;
  result.set_id(job.id());
  result.set_attempt(job.attempt());
  result.set_done_permille(std::min<uint32_t>(permille, 999));
  setup_.report(result);
}

void JobRunner::done(const wire::Job& job, const JobOutcome& outcome) {
  log::info("job", {{"id", job.id()}, {"problem", outcome.problem}});
  wire::JobResult result;
  result.set_id(job.id());
  result.set_attempt(job.attempt());
  result.set_done_permille(1000);
  result.set_problem(outcome.problem);
  result.set_unsupported(outcome.unsupported);
  result.set_size_bytes(outcome.size_bytes);
  result.mutable_images()->Add(outcome.images.begin(), outcome.images.end());
  std::optional<wire::Job> next;
  {
    const std::lock_guard lock(mutex_);
    next = std::move(jobs_[job.id()].next);
    if (next) {
      jobs_[job.id()] = {
          .pool = next->pool_uid(), .attempt = next->attempt(), .next = std::nullopt};
    } else {
      jobs_.erase(job.id());
      remember_locked(job, result);
    }
  }
  // The result of the replaced attempt is not reported. A control plane without attempt numbers
  // would treat it as the result of the next attempt.
  if (next) return post(*next);
  setup_.report(result);
}

// Results that expire are not remembered: blocklist entries time out, and lists of images become
// outdated. Without an attempt number the next request may be another attempt.
void JobRunner::remember_locked(const wire::Job& job, const wire::JobResult& result) {
  std::erase_if(ended_, [&](const wire::JobResult& other) { return other.id() == job.id(); });
  if (job.attempt() == 0 || job.has_fence_clients() || job.has_list_images()) return;
  if (ended_.size() >= limits::kMaxJobs) ended_.pop_front();
  ended_.push_back(result);
}

Result<void> JobRunner::between(const std::string& volume,
                                const std::function<void(bool served)>& task) {
  const std::shared_ptr<lun::Unit> unit = setup_.volumes.unit(volume);
  const bool served = unit && (unit->gate() & lun::Unit::kNotOwner) == 0;
  // Pausing the commands of this gateway does not pause those of the owner.
  if (unit && !served && unit->role().standing != lun::Standing::kUnavailable) {
    return Error{"another gateway owns the volume; its owner takes the snapshot"};
  }
  if (unit) {
    return between_commands(unit, setup_.reactors, kPausePatience, [&] { task(served); });
  }
  task(false);
  return {};
}

}  // namespace sluice::control
