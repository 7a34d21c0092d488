// Runs BLKDISCARD on a thread where io_uring has no command for it (before Linux 6.12), because the
// ioctl blocks. Each device has its own thread, so a device that hangs delays only its own discards
// (DESIGN R15).
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/aio.h"

namespace sluice::backend {

class Discarder {
 public:
  Discarder() = default;
  Discarder(const Discarder&) = delete;
  Discarder& operator=(const Discarder&) = delete;
  // No request may be in progress.
  ~Discarder();

  // Completes `op` as Aio::submit would; offset and length are bytes of the device `op.fd`. Creates
  // the thread at the first use. The queue is bounded by the number of Ios.
  void submit(AioOp& op, Aio& aio);

 private:
  struct Order {
    AioOp* op;
    Aio* aio;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice::backend
