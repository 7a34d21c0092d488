// An Aio for tests. It queues operations, and executes them with system calls on the thread that
// calls pump(). It records the operations. Timeouts complete immediately, in queue order;
// completions from other threads also arrive through pump().
#pragma once

#include <linux/fs.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "backend/blocking_call.h"
#include "base/aio.h"

namespace sluice::backend {

class TestAio : public Aio {
 public:
  struct Record {
    AioOp::Kind kind;
    bool may_block;  // came by submit_blocking()
    bool nowait;     // RWF_NOWAIT
    int rw_flags;    // all others
    int mode;
    uint64_t offset;
    uint64_t length;
    bool aligned_512;  // all memory of the transfer is aligned
  };

  void submit(AioOp& op) override { queue(op, false); }
  void submit_blocking(AioOp& op, BlockingCalls&, BlockingCalls::Strand*) override {
    queue(op, true);
  }

  void complete(AioOp& op, int32_t result) override {
    const std::lock_guard lock(mutex_);
    op.result = result;
    completed_.push_back(&op);
    completion_.notify_one();
  }

  // Executes one operation, or waits for one that another thread completes. False: there is
  // neither.
  bool pump() {
    if (external_ > 0) {
      AioOp& op = wait_for_completed();
      --external_;
      op.done(op, op.result);
      return true;
    }
    if (queue_.empty()) return false;
    AioOp& op = *queue_.front();
    queue_.pop_front();
    int32_t result = answer_ ? answer_(op) : 0;
    if (result == -ENOSPC && op.kind == AioOp::Kind::kWritev && op.call) op.call(op);
    op.done(op, result != 0 ? result : execute(op));
    return true;
  }

  // Supplies the result of an operation instead of the kernel; 0: the kernel executes it.
  void answer_with(std::function<int32_t(const AioOp&)> answer) { answer_ = std::move(answer); }

  const std::vector<Record>& records() const { return records_; }
  void forget_records() { records_.clear(); }
  size_t count(AioOp::Kind kind) const {
    return static_cast<size_t>(std::count_if(records_.begin(), records_.end(),
                                             [&](const Record& r) { return r.kind == kind; }));
  }

 private:
  void queue(AioOp& op, bool may_block) {
    bool aligned = true;
    for (uint32_t i = 0; i < op.iovcnt; ++i) {
      const auto base = reinterpret_cast<uintptr_t>(op.iov[i].iov_base);
      aligned = aligned && (base | op.iov[i].iov_len) % 512 == 0;
    }
    records_.push_back({.kind = op.kind,
                        .may_block = may_block,
                        .nowait = (op.rw_flags & RWF_NOWAIT) != 0,
                        .rw_flags = op.rw_flags & ~RWF_NOWAIT,
                        .mode = op.mode,
                        .offset = op.offset,
                        .length = op.length,
                        .aligned_512 = aligned});
    if (op.kind == AioOp::Kind::kExternal) {
      ++external_;
    } else {
      queue_.push_back(&op);
    }
  }

  AioOp& wait_for_completed() {
    std::unique_lock lock(mutex_);
    completion_.wait(lock, [this] { return !completed_.empty(); });
    AioOp& op = *completed_.front();
    completed_.pop_front();
    return op;
  }

  static int32_t execute(AioOp& op) {
    if (op.kind == AioOp::Kind::kTimeout) return 0;
    if (op.kind != AioOp::Kind::kPoll) return run_blocking(op);
    pollfd polled{op.fd, POLLIN, 0};
    const int n = ::poll(&polled, 1, -1);
    return n > 0 ? polled.revents : -errno;
  }

  std::deque<AioOp*> queue_;
  size_t external_ = 0;  // submitted, not done
  std::mutex mutex_;
  std::condition_variable completion_;
  std::deque<AioOp*> completed_;
  std::vector<Record> records_;
  std::function<int32_t(const AioOp&)> answer_;
};

}  // namespace sluice::backend
