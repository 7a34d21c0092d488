// Parses `key=value` lists in backend and fault specifications.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::backend {

struct Option {
  std::string_view key;
  std::string_view value;  // empty without '='
};

// Splits at any character of `separators` and omits empty items. The result refers to `text`.
std::vector<Option> split_options(std::string_view text, std::string_view separators);

// "unknown key 'szie'; did you mean 'size'? Valid keys: ..."
std::string unknown_key(std::string_view key, std::span<const std::string_view> valid);

}  // namespace sluice::backend
