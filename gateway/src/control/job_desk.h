// Takes the control plane's jobs (gateway_stream.proto, Job), has each done by its pool and tells
// what became of it. A job that is under way already is taken once.
//
// Threads: any.
#pragma once

#include <functional>
#include <mutex>
#include <set>
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
  void begin(const wire::Job& job);
  void goes_on(const std::string& id, uint32_t permille);
  void done(const std::string& id, const JobOutcome& outcome);
  Result<void> between(const std::string& volume, const std::function<void()>& task);

  const Setup setup_;
  std::mutex mutex_;
  std::set<std::string> jobs_;
};

}  // namespace sluice::control
