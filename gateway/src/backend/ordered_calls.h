// Operations of one file that run one after the other on the calling thread. Durable writes and
// syncs that wait together share one fdatasync: the file system commits its journal once instead of
// once for each (gateway/decisions/local-media.md).
//
// Threads: any. It blocks for as long as the device does.
#pragma once

#include "base/aio_list.h"

namespace sluice::backend {

// Runs all operations of `batch`, which are of one file, and passes each result to
// AioOp::aio->complete(). If the sync of a write failed, AioOp::kind of that write is kFdatasync.
void run_in_order(AioList& batch);

}  // namespace sluice::backend
