// Read-only memory full of zeros. The null backend lends it, and zeros are written from it if a
// filesystem can't zero a range itself.
#pragma once

#include <cstdint>

#include "base/limits.h"

namespace sluice::backend {

inline constexpr uint64_t kZerosSize = limits::kMaxTransferBytes;  // bytes

// Page-aligned, read-only, never freed; nullptr: the process has no address space. All pages map
// the kernel's zero page, so the cache footprint is 4 KiB.
const uint8_t* zeros();

}  // namespace sluice::backend
