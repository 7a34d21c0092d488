#include "backend/options.h"

#include <algorithm>
#include <numeric>

namespace sluice::backend {
namespace {

// The Levenshtein distance: the fewest insertions, deletions and replacements between a and b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

}  // namespace

std::vector<Option> split_options(std::string_view text, std::string_view separators) {
  std::vector<Option> options;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(separators), text.size());
    std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      options.push_back({item, {}});
    } else {
      options.push_back({item.substr(0, equals), item.substr(equals + 1)});
    }
  }
  return options;
}

std::string unknown_key(std::string_view key, std::span<const std::string_view> valid) {
  std::string_view nearest = *std::min_element(valid.begin(), valid.end(), [&](auto a, auto b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
  std::string message = "unknown key '" + std::string(key) + "'";
  // A word with less in common is no misspelling.
  if (edit_distance(key, nearest) <= key.size() / 2) {
    message += "; did you mean '" + std::string(nearest) + "'?";
  } else {
    message += '.';
  }
  message += " Valid keys:";
  for (std::string_view v : valid) message += " " + std::string(v);
  return message;
}

}  // namespace sluice::backend
