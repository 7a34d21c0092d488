// A table of limited size: a new entry replaces the least recently used one.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace sluice::iscsi {

template <class Value>
class RecencyTable {
 public:
  explicit RecencyTable(size_t max) : max_(max) {}

  // nullptr: not found. Does not count as a use.
  Value* find(std::string_view key) {
    const auto at = by_key_.find(key);
    return at == by_key_.end() ? nullptr : &at->second->second;
  }

  // Returns the entry, creating it if necessary, and makes it the most recently used.
  Value& use(std::string_view key) {
    const auto at = by_key_.find(key);
    if (at != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, at->second);
      return at->second->second;
    }
    if (entries_.size() >= max_) {
      by_key_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::string(key), Value());
    by_key_.emplace(entries_.front().first, entries_.begin());
    return entries_.front().second;
  }

  size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<std::string, Value>>;
  const size_t max_;
  Entries entries_;  // most recently used first
  std::unordered_map<std::string_view, typename Entries::iterator> by_key_;
};

}  // namespace sluice::iscsi
