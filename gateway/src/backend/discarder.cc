#include "backend/discarder.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstdint>

namespace sluice::backend {

Discarder::~Discarder() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Discarder::submit(AioOp& op, Aio& aio) {
  op.kind = AioOp::Kind::kExternal;
  aio.submit(op);
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back({&op, &aio});
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
}

void Discarder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !orders_.empty(); });
    if (orders_.empty()) return;
    const Order order = orders_.front();
    orders_.pop_front();
    lock.unlock();
    uint64_t range[2] = {order.op->offset, order.op->length};
    const int result = ioctl(order.op->fd, BLKDISCARD, range);
    order.aio->complete(*order.op, result == 0 ? 0 : -errno);
    lock.lock();
  }
}

}  // namespace sluice::backend
