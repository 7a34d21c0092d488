// The text form of a size in bytes, as people write it on a command line or in a configuration
// file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::backend {

// Parses "4096", "512B", "64KiB", "1GiB" into bytes; K, M, G and T are binary too. Units are
// case-insensitive. Decimal units (GB) are refused, because their meaning is ambiguous.
Result<uint64_t> parse_size(std::string_view text);

// The shortest exact form: 1073741824 -> "1GiB", 1000 -> "1000B".
std::string format_size(uint64_t bytes);

}  // namespace sluice::backend
