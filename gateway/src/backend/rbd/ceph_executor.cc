#include "rbd/ceph_executor.h"

#include "base/limits.h"

namespace sluice::rbd {

// Images that are being closed release their locks, so that the next process need not wait.
Executor& ceph_executor() {
  static Executor executor({.threads = limits::kImageThreads,
                            .queued_tasks = limits::kMaxImageTasks,
                            .at_end = Executor::AtEnd::kRunQueued,
                            .destructor_waits = limits::kImageCloses});
  return executor;
}

}  // namespace sluice::rbd
