// The log: one line per event on standard error, `time level message key=value ...` or one JSON
// object per line. Use it for what an operator wants to know, never once per command.
//
//   log::info("session opened", {{"initiator", name}, {"session", tsih}, {"itt", log::Hex{itt}}});
//
// Keys in use everywhere: session (TSIH), itt, initiator, target, lun, peer, portal, reactor.
// Threads: any. A line is queued and written by a thread of the log's own, so that a stuck pipe
// never stalls a reactor; when the queue is full the oldest lines give way. Below error at most
// limits::kLogLinesPerSecond lines pass: a hostile peer can't fill the disk.
// Values may come from a peer: everything unprintable is escaped.
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
  // Where lines go, without their newline; empty: standard error. Called by the log's thread.
  std::function<void(std::string_view line)> sink;
};

// Before start() lines go straight to standard error. start() may be called again.
void start(Setup setup);
// Writes what is queued and ends the log's thread.
void stop();
void set_level(Level level);

// For a process that is about to kill itself: one error line past the queue, written now or, where
// standard error would block, not at all.
void last_words(std::string_view message, Fields fields = {});

bool enabled(Level level);
void write(Level level, std::string_view message, Fields fields = {});

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

// One line as it would be written; `nanos` since 1970. For tests.
std::string render(Format format, int64_t nanos, Level level, std::string_view message,
                   Fields fields);

}  // namespace sluice::log
