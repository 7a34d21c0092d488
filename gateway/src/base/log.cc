#include "base/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <iterator>
#include <memory>
#include <mutex>

#include "base/limits.h"

namespace sluice::log {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};

using Buffer = fmt::memory_buffer;

// Passes the lines to a callback, for tests and other consumers.
class CallbackSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CallbackSink(std::function<void(std::string_view)> f) : callback_(std::move(f)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    callback_({msg.payload.data(), msg.payload.size()});
  }
  void flush_() override {}

 private:
  std::function<void(std::string_view)> callback_;
};

Level level_of(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return Level::kDebug;
  if (level == spdlog::level::info) return Level::kInfo;
  return level == spdlog::level::warn ? Level::kWarning : Level::kError;
}

// What is logged with spdlog's own functions takes the same way out.
class BridgeSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& msg) override {
    write(level_of(msg.level), {msg.payload.data(), msg.payload.size()});
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

// The pool goes first (members die in reverse order): its destructor writes what is queued and
// joins its thread, which uses the logger until then.
struct Output {
  std::shared_ptr<spdlog::logger> logger;
  std::shared_ptr<spdlog::details::thread_pool> pool;
};

std::mutex output_mutex;
Output& output() {
  static Output instance;
  return instance;
}

std::shared_ptr<spdlog::logger> current_logger() {
  const std::lock_guard lock(output_mutex);
  Output& out = output();
  if (!out.logger) {
    out.logger = std::make_shared<spdlog::logger>(
        "sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    out.logger->set_pattern("%v");
  }
  return out.logger;
}

std::atomic<Level> threshold{Level::kInfo};
std::atomic<Format> line_format{Format::kText};

// Counts lines in windows of one second.
class Throttle {
 public:
  // False: the line is one too many. *skipped: lines left out in the windows before this one.
  bool admit(int64_t second, uint64_t* skipped) {
    const std::lock_guard lock(mutex_);
    if (second != window_) {
      window_ = second;
      *skipped = std::exchange(skipped_, 0);
      lines_ = 0;
    }
    if (++lines_ <= limits::kLogLinesPerSecond) return true;
    ++skipped_;
    return false;
  }

 private:
  std::mutex mutex_;
  int64_t window_ = 0;
  uint64_t lines_ = 0;
  uint64_t skipped_ = 0;
};
Throttle throttle;

void escape_byte(Buffer& out, unsigned char c, Format format) {
  switch (c) {
    case '\n':
      return fmt::format_to(std::back_inserter(out), "\\n"), void();
    case '\t':
      return fmt::format_to(std::back_inserter(out), "\\t"), void();
    case '"':
      return fmt::format_to(std::back_inserter(out), "\\\""), void();
    case '\\':
      return fmt::format_to(std::back_inserter(out), "\\\\"), void();
    default:
      break;
  }
  if (c >= 0x20 && c < 0x7f) {
    out.push_back(static_cast<char>(c));
  } else if (format == Format::kJson) {
    // Bytes of a peer need not be UTF-8, JSON must be: each stands for the code point it numbers.
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
  } else {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", c);
  }
}

void quoted(Buffer& out, std::string_view text, Format format) {
  out.push_back('"');
  for (const char c : text) escape_byte(out, static_cast<unsigned char>(c), format);
  out.push_back('"');
}

bool plain(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=') return false;
  }
  return true;
}

struct ValueWriter {
  Buffer& out;
  Format format;

  void operator()(std::string_view v) const {
    if (format == Format::kText && plain(v)) {
      out.append(v);
    } else {
      quoted(out, v, format);
    }
  }
  void operator()(Hex v) const {
    const std::string_view quote = format == Format::kJson ? "\"" : "";
    fmt::format_to(std::back_inserter(out), "{}{:#x}{}", quote, v.value, quote);
  }
  template <class T>
  void operator()(T v) const {
    fmt::format_to(std::back_inserter(out), "{}", v);
  }
};

void render_field(Buffer& out, Format format, const Field& field) {
  if (format == Format::kJson) {
    out.push_back(',');
    quoted(out, field.key, format);
    out.push_back(':');
  } else {
    out.push_back(' ');
    out.append(field.key);
    out.push_back('=');
  }
  std::visit(ValueWriter{out, format}, field.value);
}

void render_to(Buffer& out, Format format, int64_t nanos, Level level, std::string_view message,
               Fields fields, Fields more = {}) {
  const auto name = kLevelNames.at(static_cast<size_t>(level));
  const auto time = fmt::gmtime(static_cast<std::time_t>(nanos / 1'000'000'000));
  const int64_t micros = nanos % 1'000'000'000 / 1000;
  auto to = std::back_inserter(out);
  const bool json = format == Format::kJson;
  if (json) {
    fmt::format_to(to, "{{\"time\":\"{:%FT%T}.{:06}Z\",\"level\":\"{}\",\"msg\":", time, micros,
                   name);
  } else {
    fmt::format_to(to, "{:%FT%T}.{:06}Z {:7} ", time, micros, name);
  }
  if (json) {
    quoted(out, message, format);
  } else {
    for (const char c : message) {
      // A message may have been put together from what a peer sent.
      if (c >= ' ' && c < 0x7f) {
        out.push_back(c);
      } else {
        escape_byte(out, static_cast<unsigned char>(c), format);
      }
    }
  }
  for (const Field& field : fields) render_field(out, format, field);
  for (const Field& field : more) render_field(out, format, field);
  if (json) out.push_back('}');
}

int64_t wall_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void put(Level level, int64_t nanos, std::string_view message, Fields fields, Fields more = {}) {
  Buffer line;
  render_to(line, line_format.load(std::memory_order_relaxed), nanos, level, message, fields, more);
  current_logger()->log(level == Level::kError ? spdlog::level::err : spdlog::level::info,
                        spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void start(Setup setup) {
  Output next;
  next.pool = std::make_shared<spdlog::details::thread_pool>(limits::kLogQueue, 1);
  spdlog::sink_ptr sink;
  if (setup.sink) {
    sink = std::make_shared<CallbackSink>(std::move(setup.sink));
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  next.logger = std::make_shared<spdlog::async_logger>(
      "sluice", std::move(sink), next.pool, spdlog::async_overflow_policy::overrun_oldest);
  next.logger->set_pattern("%v");
  threshold.store(setup.level, std::memory_order_relaxed);
  line_format.store(setup.format, std::memory_order_relaxed);
  auto bridge = std::make_shared<spdlog::logger>("bridge", std::make_shared<BridgeSink>());
  bridge->set_level(spdlog::level::trace);  // the threshold decides
  spdlog::set_default_logger(std::move(bridge));
  const std::lock_guard lock(output_mutex);
  std::swap(output(), next);
}

void stop() {
  Output last;
  const std::lock_guard lock(output_mutex);
  std::swap(output(), last);
}

void set_level(Level level) { threshold.store(level, std::memory_order_relaxed); }

bool enabled(Level level) { return level >= threshold.load(std::memory_order_relaxed); }

void write(Level level, std::string_view message, Fields fields) {
  write(level, message, fields, {});
}

void write(Level level, std::string_view message, Fields fields, Fields more) {
  if (!enabled(level)) return;
  const int64_t nanos = wall_clock();
  uint64_t skipped = 0;
  const bool admitted = throttle.admit(nanos / 1'000'000'000, &skipped);
  if (skipped > 0) put(Level::kWarning, nanos, "lines left out", {{"count", skipped}});
  if (admitted || level == Level::kError) put(level, nanos, message, fields, more);
}

void last_words(std::string_view message, Fields fields) {
  Buffer line;
  render_to(line, line_format.load(std::memory_order_relaxed), wall_clock(), Level::kError, message,
            fields);
  line.push_back('\n');
  pollfd err{STDERR_FILENO, POLLOUT, 0};
  // A pipe that can be written to has room for PIPE_BUF bytes.
  if (::poll(&err, 1, 0) != 1 || line.size() > PIPE_BUF) return;
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string render(Format format, int64_t nanos, Level level, std::string_view message,
                   Fields fields) {
  Buffer out;
  render_to(out, format, nanos, level, message, fields);
  return fmt::to_string(out);
}

}  // namespace sluice::log
