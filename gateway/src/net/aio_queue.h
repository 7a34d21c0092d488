// The kernel's asynchronous I/O for backends (base/aio.h), by a reactor's ring.
//
// Threads: complete() any; all other functions the reactor's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/aio.h"
#include "base/aio_list.h"
#include "net/submission_queue.h"
#include "net/wakeup.h"

namespace sluice::net {

class AioQueue final : public Aio {
 public:
  AioQueue(SubmissionQueue& submissions, Wakeup& wakeup)
      : submissions_(submissions), wakeup_(wakeup) {}
  // Waits for threads that are about to leave complete().
  ~AioQueue() override;

  void submit(AioOp& op) override;
  void submit_blocking(AioOp& op, BlockingCalls& threads, BlockingCalls::Strand* strand) override;
  void complete(AioOp& op, int32_t result) override;

  // Passes the operations of submit_blocking() to their threads. Call it where the
  // entries of the ring are submitted: operations of one batch arrive together.
  void hand_over();

  // Completions of CompletionKind::kAio and kTimer.
  void on_completion(AioOp& op, int32_t result);
  void on_timer(void* timer);
  // Ends the operations that complete() was called for, in the order of the calls.
  void run_completed();
  // Withdraws changes of data that are neither submitted nor handed over; they end with -ECANCELED.
  void cancel_unsubmitted();

  size_t in_flight() const { return in_flight_; }

 private:
  struct Timer;

  void submit_timeout(io_uring_sqe* e, AioOp& op);

  SubmissionQueue& submissions_;
  Wakeup& wakeup_;
  AioList blocking_;                        // not handed over yet
  size_t in_flight_ = 0;                    // submitted and not done
  std::atomic<AioOp*> completed_{nullptr};  // from complete(), the last first
  // Threads in complete(). The reactor may process their operation, and end, before they have woken
  // it.
  std::atomic<unsigned> completing_{0};
};

}  // namespace sluice::net
