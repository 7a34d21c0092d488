// Hexadecimal digits, and texts of them in lower case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace sluice {

// The two digits of a byte.
constexpr std::array<char, 2> hex_digits(uint8_t byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// The value of a digit, in upper or lower case; -1: it is none.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

inline std::string hex_text(ByteView bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    for (const char digit : hex_digits(byte)) text += digit;
  }
  return text;
}

// A number with leading zeros: its last `digits` digits.
inline std::string hex_number(uint64_t value, size_t digits) {
  std::string text(digits, '0');
  for (size_t i = digits; i-- > 0; value >>= 4) {
    text[i] = hex_digits(static_cast<uint8_t>(value & 15))[1];
  }
  return text;
}

// RFC 9562 §4.
inline std::string uuid_text(const std::array<uint8_t, 16>& uuid) {
  std::string text = hex_text(uuid);
  for (const size_t dash : {8, 13, 18, 23}) text.insert(dash, 1, '-');
  return text;
}

// Reads what uuid_text() writes, with digits in either case.
inline std::optional<std::array<uint8_t, 16>> uuid_of(std::string_view text) {
  std::array<uint8_t, 16> uuid{};
  if (text.size() != 36) return std::nullopt;
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int value = hex_value(text[i]);
    if (value < 0) return std::nullopt;
    uint8_t& byte = uuid[digits++ / 2];
    byte = static_cast<uint8_t>(byte << 4 | value);
  }
  return uuid;
}

}  // namespace sluice
