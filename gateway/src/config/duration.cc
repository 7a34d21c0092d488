#include "config/duration.h"

#include <charconv>

namespace sluice::config {

Result<Nanos> parse_duration(std::string_view text) {
  const Error malformed{
      "'" + std::string(text) +
      "' is not a duration; write a whole number and us, ms, s or m, as in 1500ms"};
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return malformed;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit == "us") return number * kMicrosecond;
  if (unit == "ms") return number * kMillisecond;
  if (unit == "s") return number * kSecond;
  if (unit == "m") return number * 60 * kSecond;
  return malformed;
}

std::string format_duration(Nanos nanos) {
  if (nanos % (60 * kSecond) == 0 && nanos != 0)
    return std::to_string(nanos / (60 * kSecond)) + "m";
  if (nanos % kSecond == 0) return std::to_string(nanos / kSecond) + "s";
  if (nanos % kMillisecond == 0) return std::to_string(nanos / kMillisecond) + "ms";
  return std::to_string(nanos / kMicrosecond) + "us";
}

}  // namespace sluice::config
