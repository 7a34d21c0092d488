#include "backend/size_text.h"

#include <array>
#include <cctype>
#include <charconv>

namespace sluice::backend {

Result<uint64_t> parse_size(std::string_view text) {
  const std::string quoted = "'" + std::string(text) + "'";
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return Error{quoted + " is larger than 16EiB"};
  if (error != std::errc() || end == text.data()) {
    return Error{quoted + " is not a size; write a whole number and a unit, as in 64MiB"};
  }
  std::string unit;
  for (const char* p = end; p != text.data() + text.size(); ++p) {
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  if (unit.empty() || unit == "b") return number;
  size_t power = std::string_view("kmgtpe").find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "ib")) {
    return Error{quoted +
                 " has an unknown unit; use B, KiB, MiB, GiB, TiB, PiB or EiB (powers of 1024)"};
  }
  unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (number > UINT64_MAX >> shift) return Error{quoted + " is larger than 16EiB"};
  return number << shift;
}

std::string format_size(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

}  // namespace sluice::backend
