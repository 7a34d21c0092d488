// Threads for work that waits for Ceph: opening, locking, resizing, closing. A reactor posts such
// work and continues; a control thread waits for it for a bounded time.
//
// A task's group is usually a pool, or the address of a client (gateway/decisions/ceph.md).
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "backend/failure.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"

namespace sluice::rbd {

// Serves the whole process: limits::kImageThreads for a group, which has at most
// limits::kMaxImageTasks queued. At the end of the process, queued tasks have limits::kImageCloses
// to finish.
Executor& ceph_executor();

// Runs `work`, which returns a Result<T>, on that executor and waits for at most `bound`. A later
// result is destroyed by the executor's thread. `name` is the subject of errors.
template <class T>
Result<T> wait_for_ceph(const std::string& group, const std::string& name, Nanos bound,
                        std::function<Result<T>()> work) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  std::future<Result<T>> result = promise->get_future();
  const bool taken = ceph_executor().try_post(
      {group}, [promise, work = std::move(work)] { promise->set_value(work()); });
  if (!taken) return backend::fail(name, "too much waits for Ceph already", "try again");
  if (result.wait_for(std::chrono::nanoseconds(bound)) != std::future_status::ready) {
    return backend::fail(name,
                         "Ceph didn't answer within " + std::to_string(bound / kSecond) + " s",
                         "look at `ceph -s`: placement groups may be inactive");
  }
  return result.get();
}

}  // namespace sluice::rbd
