// Memory that reads zeros and costs nothing: what the null backend lends and what zeros are
// written from where a filesystem can't zero a range itself.
#pragma once

#include <cstdint>

#include "base/limits.h"

namespace sluice::backend {

inline constexpr uint64_t kZerosSize = limits::kMaxTransferBytes;  // bytes

// Page-aligned, read-only, valid for ever; nullptr when the process is out of address space.
// Every page of it is the kernel's one zero page, so its cache footprint is 4 KiB however much of
// it is read.
const uint8_t* zeros();

}  // namespace sluice::backend
