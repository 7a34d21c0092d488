// The log: one line per event on standard error, `time level message key=value ...` or one JSON
// object per line. Log what an operator needs to know, never something per command.
//
//   log::info("session opened", {{"initiator", name}, {"session", tsih}, {"itt", log::Hex{itt}}});
//
// Common keys: session (TSIH), itt, initiator, target, lun, peer, portal, reactor.
//
// Threads: any. A line is queued, and the log's own thread writes it, so that a blocked pipe never
// stalls a reactor. If the queue is full, the oldest lines are dropped. Below level error at most
// limits::kLogLinesPerSecond lines are written, so that a hostile peer can't fill the disk. Values
// may come from a peer: all unprintable characters are escaped.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace sluice::log {

enum class Level : uint8_t { kDebug, kInfo, kWarning, kError };
enum class Format : uint8_t { kText, kJson };

struct Hex {
  uint64_t value;
};

struct Field {
  using Value = std::variant<std::string_view, int64_t, uint64_t, double, bool, Hex>;
  std::string_view key;
  Value value;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, double v) : key(k), value(v) {}
  Field(std::string_view k, Hex v) : key(k), value(v) {}
  template <std::signed_integral T>
  Field(std::string_view k, T v) : key(k), value(int64_t{v}) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view k, T v) : key(k), value(uint64_t{v}) {}
};
using Fields = std::initializer_list<Field>;

struct Setup {
  Level level = Level::kInfo;
  Format format = Format::kText;
  // Receives the lines without a newline; empty: standard error. Called on the log's thread.
  std::function<void(std::string_view line)> sink;
};

// Before start(), lines are written directly to standard error. start() may be called again.
void start(Setup setup);
// Writes queued lines and ends the log's thread.
void stop();
void set_level(Level level);

// For a process that is about to kill itself: writes one error line without the queue, immediately;
// drops it if standard error would block.
void last_words(std::string_view message, Fields fields = {});

bool enabled(Level level);
void write(Level level, std::string_view message, Fields fields = {});
// With the fields of `more` at the end.
void write(Level level, std::string_view message, Fields fields, Fields more);

inline void debug(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kDebug)) write(Level::kDebug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kInfo)) write(Level::kInfo, message, fields);
}
inline void warning(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kWarning)) write(Level::kWarning, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::kError, message, fields);
}

// The text of one line; `nanos` since 1970. For tests.
std::string render(Format format, int64_t nanos, Level level, std::string_view message,
                   Fields fields);

}  // namespace sluice::log
