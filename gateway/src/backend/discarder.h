// BLKDISCARD where the kernel's ring has no command for it (before Linux 6.12): the ioctl blocks,
// so it is done on a thread, one for each device: a device that hangs delays its own discards only
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
  // Nothing may be under way any more.
  ~Discarder();

  // Ends `op` as Aio::submit would: offset and length are bytes of the device `op.fd`. The thread
  // is made when it is first needed. As many wait as there are Ios, which are bounded.
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
