// Which requests fail because the page cache lost data of an open file. The kernel reports a
// writeback error once per open file (errseq_t), so the first request that checks receives it,
// whichever page failed. So every request in flight fails. Data that was only cached may be lost
// too, so the next flush also reports the loss (gateway/decisions/local-media.md).
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "backend/backend.h"

namespace sluice::backend {

class WritebackLosses {
 public:
  // The number of losses until now; Io::priv.seen keeps it from the begin of a request.
  uint64_t count() const { return count_.load(std::memory_order_acquire); }
  // The result of a request that had to be durable, from the `result` of the kernel. `free_bytes`:
  // the space of the file system after it refused a write with ENOSPC; otherwise nullopt.
  int64_t outcome(const Io& io, int64_t result,
                  const std::optional<uint64_t>& free_bytes = std::nullopt);

 private:
  // How often the medium failed to store data that had to be durable.
  std::atomic<uint64_t> count_ = 0;
  // The number of losses that a flush reported last.
  std::atomic<uint64_t> flushed_at_ = 0;
};

}  // namespace sluice::backend
