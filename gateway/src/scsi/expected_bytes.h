// For tests: bytes written as in the standards' tables.
#pragma once

#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::scsi {

// "05 00 ff" -> {5, 0, 255}; "00*4" repeats a byte. Anything that isn't a hexadecimal digit or
// part of a repetition separates.
inline std::vector<uint8_t> hex(std::string_view text) {
  std::vector<uint8_t> out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (size_t i = 0; i < text.size();) {
    if (std::isxdigit(static_cast<unsigned char>(text[i])) == 0) {
      ++i;
      continue;
    }
    out.push_back(static_cast<uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
    i += 2;
    if (i < text.size() && text[i] == '*') {
      size_t times = 0;
      for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
        times = times * 10 + static_cast<size_t>(text[i] - '0');
      }
      out.insert(out.end(), times - 1, out.back());
    }
  }
  return out;
}

// Characters as bytes.
inline std::vector<uint8_t> ascii(std::string_view text) { return {text.begin(), text.end()}; }

inline std::vector<uint8_t> operator+(std::vector<uint8_t> a, const std::vector<uint8_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Runs a builder with ample room and returns what it wrote.
template <class Build>
std::vector<uint8_t> built(Build build) {
  std::vector<uint8_t> out(65536, 0xee);
  out.resize(build(out));
  return out;
}

}  // namespace sluice::scsi
