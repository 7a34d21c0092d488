#include "base/log_repeats.h"

#include "base/boot_clock.h"

namespace sluice::log {

std::optional<uint64_t> Repeats::admit(std::string_view cause, Nanos now) {
  const std::lock_guard lock(mutex_);
  const auto known = causes_.find(std::string(cause));
  if (known != causes_.end()) {
    Entry& entry = known->second;
    if (now - entry.written < kSpan) {
      ++entry.left_out;
      return std::nullopt;
    }
    const uint64_t left_out = entry.left_out;
    entry = {now, 0};
    return left_out;
  }
  if (causes_.size() >= kMaxCauses) {
    causes_.erase(order_.front());
    order_.pop_front();
  }
  order_.emplace_back(cause);
  causes_.emplace(order_.back(), Entry{now, 0});
  return 0;
}

size_t Repeats::size() const {
  const std::lock_guard lock(mutex_);
  return causes_.size();
}

void repeated(Level level, std::string_view cause, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  static Repeats& all =
      *new Repeats;  // never destroyed: detached threads log until the process ends
  std::string key(message);
  key += '\0';
  key += cause;
  const std::optional<uint64_t> left_out = all.admit(key, boot_clock_now());
  if (!left_out) return;
  if (*left_out == 0) return write(level, message, fields);
  write(level, message, fields, {{"suppressed", *left_out}});
}

}  // namespace sluice::log
