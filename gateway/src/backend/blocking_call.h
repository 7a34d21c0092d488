// Executes an operation by system calls of the calling thread.
#pragma once

#include <cstdint>

#include "base/aio.h"

namespace sluice::backend {

// For all kinds but kTimeout, kPoll and kExternal. Returns bytes, 0 or a negative errno. It blocks
// for as long as the medium does.
int32_t run_blocking(AioOp& op);

}  // namespace sluice::backend
