// Log lines of events that a peer or a wrong setting can repeat without an end: at most one line
// per cause and minute, which states how many lines were left out since the line before.
//
//   log::repeated(log::Level::kWarning, address + reason, "connection dropped", {{"peer", peer}});
//
// The cause distinguishes what an operator would correct separately. It must not contain what
// differs each time, such as a port or a counter.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/log.h"

namespace sluice::log {

// Which lines are written. Time is passed in.
class Repeats {
 public:
  static constexpr Nanos kSpan = 60 * kSecond;
  // Causes that are remembered; the oldest one is forgotten for a further one.
  static constexpr size_t kMaxCauses = 1024;

  // Nothing: the line is left out. Else the lines of this cause that were left out before it.
  std::optional<uint64_t> admit(std::string_view cause, Nanos now);
  size_t size() const;  // causes that are remembered

 private:
  struct Entry {
    Nanos written = 0;
    uint64_t left_out = 0;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> causes_;
  std::deque<std::string> order_;  // in which the causes came
};

// Writes the line unless one with this message and cause was written within Repeats::kSpan. After
// lines that were left out, the next one has a further field `suppressed` with their count.
void repeated(Level level, std::string_view cause, std::string_view message, Fields fields = {});

}  // namespace sluice::log
