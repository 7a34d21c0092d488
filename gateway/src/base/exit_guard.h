// Lets the end of this process release its locks and connections although one of its threads is
// blocked in the kernel.
//
// While a call lasts long (BlockingSection), a release process exists (release_process.h), however
// this process then dies. Usually there is none, and the kernel releases everything.
//
// Threads: any; one of its own. One object for the process, before all threads that block.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/release_process.h"

namespace sluice {

class ExitGuard {
 public:
  ExitGuard();
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

  // After this time the process ends with `status`, whatever its threads do; not if the object is
  // destroyed before.
  void end_process_after(Nanos time, int status);

  // Returns when a release process is ready, or after limits::kReleaseReady. For a process that is
  // about to end. Nothing if there is no ExitGuard.
  static void prepare();

 private:
  struct End {
    Nanos at = 0;
    int status = 0;
  };

  void run();
  void prepare_this();
  void review(bool lasting);
  [[noreturn]] void end_now(int status);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ready_changed_;
  bool stopping_ = false;
  bool asked_ = false;     // by prepare(), and not seen yet
  bool required_ = false;  // by prepare()
  bool ready_ = false;
  std::optional<End> end_;

  // The guard's thread only.
  std::unique_ptr<ReleaseProcess> process_;
  Nanos needed_until_ = 0;
  bool failure_logged_ = false;

  std::thread thread_;  // last, because it uses the other members
};

}  // namespace sluice
