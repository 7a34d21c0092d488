// Columns for a terminal, and numbers in readable form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::admin {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  // The row must have as many cells as the header.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Aligned, one line per row; unprintable characters become '?', because names come from peers.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string human_bytes(uint64_t bytes);    // "512B", "1.5MiB"
std::string human_seconds(double seconds);  // "12s", "3m05s", "2d04h"

}  // namespace sluice::admin
