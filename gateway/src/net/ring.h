// Sets up an io_uring with the best flags that the kernel offers, and explains refusals.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sluice::net {

// Features of the running kernel. One log line at start shows them.
struct RingFeatures {
  bool single_issuer = false;        // 6.0
  bool defer_taskrun = false;        // 6.1
  bool incremental_buffers = false;  // 6.12: IOU_PBUF_RING_INC
};

// Sets up a ring for the calling thread. Error: which layer refused (seccomp,
// kernel.io_uring_disabled, RLIMIT_MEMLOCK, a kernel without it) and how to correct it.
Result<RingFeatures> open_ring(io_uring* ring, unsigned entries);

// The message for an errno of io_uring_setup(); separate for tests. `disabled`: content of
// /proc/sys/kernel/io_uring_disabled or empty; `seccomp`: the mode in /proc/self/status.
std::string explain_refusal(int error, const std::string& disabled, int seccomp,
                            const std::string& kernel_release);

// What a result of io_uring_submit() or io_uring_submit_and_wait() requires (io_uring_enter(2)).
enum class Submission : uint8_t {
  kDone,    // the kernel has taken the entries
  kRetry,   // interrupted, short of memory, or completions have to be handled first
  kFailed,  // the ring is not usable: no later attempt can succeed
};
Submission submission_of(int result);

}  // namespace sluice::net
