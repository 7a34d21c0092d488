// Accepts jobs from the control plane (gateway_stream.proto, Job), has the pool run them and
// reports their results.
//
// - An attempt that is already running is ignored.
// - Another attempt of a running job waits and then runs, because it may request something else.
//   Only its own result is reported.
// - An attempt that has ended: its result was lost, so it is reported again. If it is no longer
//   remembered, the attempt runs again.
//
// Threads: any.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/executor.h"
#include "base/reactors.h"
#include "control/volume/volumes.h"

namespace sluice::control {

class JobRunner {
 public:
  struct Setup {
    Volumes& volumes;
    Executor& executor;
    Reactors& reactors;
    std::function<void(const wire::JobResult&)> report;
  };
  explicit JobRunner(Setup setup) : setup_(std::move(setup)) {}

  void submit(const wire::Job& job);

 private:
  struct UnderWay {
    std::string pool;  // uid
    uint64_t attempt = 0;
    std::optional<wire::Job> next;  // the newest other attempt, which runs next
  };
  bool is_full_locked(const std::string& pool) const;
  void post(const wire::Job& job);
  void begin(const wire::Job& job);
  void report_progress(const wire::Job& job, uint32_t permille);
  void done(const wire::Job& job, const JobOutcome& outcome);
  void remember_locked(const wire::Job& job, const wire::JobResult& result);
  Result<void> between(const std::string& volume, const std::function<void(bool served)>& task);

  const Setup setup_;
  std::mutex mutex_;
  std::map<std::string, UnderWay> jobs_;
  std::deque<wire::JobResult> ended_;  // at most limits::kMaxJobs, newest last
};

}  // namespace sluice::control
