// Takes the control plane's jobs (gateway_stream.proto, Job), has each done by its pool and tells
// what became of it.
//
//   an attempt that is under way comes again     it is taken once
//   another attempt of a job that is under way   waits for it, and is answered by what became of
//                                                itself: it may ask for something else
//   an attempt that has ended comes again        its result was lost: it is told again, as long as
//                                                it is remembered; else done again
//
// Threads: any.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/reactors.h"
#include "control/volume/turns.h"
#include "control/volume/volumes.h"

namespace sluice::control {

class JobDesk {
 public:
  struct Setup {
    Volumes& volumes;
    Turns& turns;
    Reactors& reactors;
    std::function<void(const wire::JobResult&)> tell;
  };
  explicit JobDesk(Setup setup) : setup_(std::move(setup)) {}

  void take(const wire::Job& job);

 private:
  struct UnderWay {
    uint64_t attempt = 0;
    std::optional<wire::Job> next;  // the newest of other attempts
  };
  void post(const wire::Job& job);
  void begin(const wire::Job& job);
  void tell_progress(const wire::Job& job, uint32_t permille);
  void done(const wire::Job& job, const JobOutcome& outcome);
  void keep_locked(const wire::Job& job, const wire::JobResult& result);
  Result<void> between(const std::string& volume, const std::function<void(bool served)>& task);

  const Setup setup_;
  std::mutex mutex_;
  std::map<std::string, UnderWay> jobs_;
  std::deque<wire::JobResult> ended_;  // at most limits::kMaxJobs, the newest last
};

}  // namespace sluice::control
