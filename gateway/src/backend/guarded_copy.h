// Copies into and out of a mapped file. Whoever truncates such a file takes the pages away under
// the copy, and the kernel answers the next touch with SIGBUS: here that is a failed copy, not the
// end of the process.
//
// Threads: any. A thread must not be within two copies at once (no copying in signal handlers).
#pragma once

#include <sys/uio.h>

#include <cstdint>

namespace sluice::backend {

// Takes SIGBUS over for the process, once. Faults that are none of ours go to the handler that was
// there before, or end the process as they would have. Before the first copy.
void install_copy_guard();

// The sum of the iovecs' lengths is copied. False: a page of `mapped` is gone (or broken, on
// machines that report that); any part of the range may have been copied.
bool copy_into_mapping(uint8_t* mapped, uint64_t length, const iovec* iov, uint32_t iovcnt);
bool copy_from_mapping(const uint8_t* mapped, uint64_t length, const iovec* iov, uint32_t iovcnt);

}  // namespace sluice::backend
