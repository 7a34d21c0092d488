// Copies into and out of a mapped file. If another process truncates the file during the copy, the
// kernel raises SIGBUS; these functions then return false instead of ending the process.
//
// Threads: any. A thread must not run two copies at once, so do not call them in signal handlers.
#pragma once

#include <sys/uio.h>

#include <cstdint>

namespace sluice::backend {

// Installs the process's SIGBUS handler, once. Other faults are passed to the previous handler, or
// end the process as before. Call it before the first copy.
void install_copy_guard();

// Copies the sum of the iovecs' lengths. False: a page of `mapped` is missing, or the hardware
// reported it broken; any part of the range may have been copied.
bool copy_into_mapping(uint8_t* mapped, uint64_t length, const iovec* iov, uint32_t iovcnt);
bool copy_from_mapping(const uint8_t* mapped, uint64_t length, const iovec* iov, uint32_t iovcnt);

}  // namespace sluice::backend
