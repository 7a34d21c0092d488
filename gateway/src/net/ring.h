// One io_uring, set up with the best the kernel offers and explained when it refuses.
#pragma once

#include <liburing.h>

#include <string>

#include "base/result.h"

namespace sluice::net {

// What the running kernel gave us; one log line at start shows it.
struct RingFeatures {
  bool single_issuer = false;        // 6.0
  bool defer_taskrun = false;        // 6.1
  bool incremental_buffers = false;  // 6.12: IOU_PBUF_RING_INC
};

// Sets up a ring for the calling thread. Error: which layer refused (seccomp,
// kernel.io_uring_disabled, RLIMIT_MEMLOCK, a kernel without it) and how to mend it.
Result<RingFeatures> open_ring(io_uring* ring, unsigned entries);

// The sentence for an io_uring_setup() errno; split out for tests. `disabled`: content of
// /proc/sys/kernel/io_uring_disabled or empty; `seccomp`: the mode in /proc/self/status.
std::string explain_refusal(int error, const std::string& disabled, int seccomp,
                            const std::string& kernel_release);

}  // namespace sluice::net
