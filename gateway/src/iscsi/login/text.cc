#include "iscsi/login/text.h"

#include <algorithm>
#include <limits>

#include "base/hex.h"
#include "base/limits.h"

namespace sluice::iscsi {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A key is a standard-label (RFC 7143 §6.1). It should begin with a capital letter, but the
// standard's own iSCSIProtocolLevel doesn't; '#' is part of registered private keys (§13.22).
bool is_key(std::string_view key) {
  if (key.empty() || key.size() > limits::kMaxKeyName || !is_letter(key[0])) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '+' || c == '@' ||
           c == '_' || c == '#';
  });
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (is_digit(c)) return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

bool has_prefix(std::string_view value, char letter) {
  return value.size() > 2 && value[0] == '0' && (value[1] | 0x20) == letter;
}

std::optional<std::vector<uint8_t>> parse_hex_binary(std::string_view digits, size_t max_bytes) {
  if ((digits.size() + 1) / 2 > max_bytes) return std::nullopt;
  std::vector<uint8_t> bytes((digits.size() + 1) / 2);
  // An odd number of digits lacks the leading zero.
  size_t nibble = digits.size() % 2;
  for (char c : digits) {
    int digit = hex_value(c);
    if (digit < 0) return std::nullopt;
    bytes[nibble / 2] = static_cast<uint8_t>(bytes[nibble / 2] << 4 | digit);
    ++nibble;
  }
  return bytes;
}

std::optional<std::vector<uint8_t>> parse_base64_binary(std::string_view digits, size_t max_bytes) {
  if (digits.size() % 4 != 0) return std::nullopt;
  size_t padding = digits.ends_with("==") ? 2 : digits.ends_with('=') ? 1 : 0;
  size_t size = digits.size() / 4 * 3 - padding;
  if (size > max_bytes) return std::nullopt;
  std::vector<uint8_t> bytes;
  bytes.reserve(size);
  uint32_t bits = 0;
  unsigned count = 0;
  for (char c : digits.substr(0, digits.size() - padding)) {
    int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xffffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<uint8_t>(bits >> count));
    }
  }
  // Bits that no byte holds must be zero, else two texts would mean the same bytes.
  if ((bits & ((1u << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace

Result<std::vector<TextPair>> parse_text(std::string_view text) {
  std::vector<TextPair> pairs;
  while (!text.empty()) {
    size_t end = text.find('\0');
    if (end == std::string_view::npos) return Error{"the text doesn't end with a zero byte"};
    std::string_view pair = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (pair.empty()) continue;  // "at least one" zero byte follows a pair
    size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return Error{"a key has no '='"};
    std::string_view key = pair.substr(0, equals);
    if (!is_key(key)) return Error{"a key name is malformed or longer than 63 bytes"};
    if (pairs.size() == limits::kMaxKeysPerExchange) return Error{"too many keys"};
    const std::string_view value = pair.substr(equals + 1);
    const auto earlier = std::find_if(pairs.begin(), pairs.end(),
                                      [key](const TextPair& other) { return other.key == key; });
    if (earlier == pairs.end()) {
      pairs.push_back({key, value});
    } else if (earlier->value != value) {
      return Error{std::string(key) + " was given twice, with different values"};
    }
  }
  return pairs;
}

void append_pair(std::string* text, std::string_view key, std::string_view value) {
  text->append(key).append(1, '=').append(value).append(1, '\0');
}

std::optional<bool> parse_boolean(std::string_view value) {
  if (value == "Yes") return true;
  if (value == "No") return false;
  return std::nullopt;
}

std::string_view boolean_text(bool value) { return value ? "Yes" : "No"; }

std::optional<uint64_t> parse_number(std::string_view value) {
  uint64_t number = 0;
  if (has_prefix(value, 'x')) {
    for (char c : value.substr(2)) {
      int digit = hex_value(c);
      if (digit < 0 || number >> 60 != 0) return std::nullopt;
      number = number << 4 | static_cast<uint64_t>(digit);
    }
    return number;
  }
  if (value.empty() || (value[0] == '0' && value.size() > 1)) return std::nullopt;
  for (char c : value) {
    if (!is_digit(c)) return std::nullopt;
    auto digit = static_cast<uint64_t>(c - '0');
    if (number > (std::numeric_limits<uint64_t>::max() - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

std::optional<std::pair<uint64_t, uint64_t>> parse_range(std::string_view value) {
  size_t tilde = value.find('~');
  std::optional<uint64_t> low = parse_number(value.substr(0, tilde));
  if (!low) return std::nullopt;
  if (tilde == std::string_view::npos) return std::pair{*low, *low};
  std::optional<uint64_t> high = parse_number(value.substr(tilde + 1));
  if (!high || *high < *low) return std::nullopt;
  return std::pair{*low, *high};
}

std::optional<std::vector<uint8_t>> parse_binary(std::string_view value, size_t max_bytes) {
  if (has_prefix(value, 'x')) return parse_hex_binary(value.substr(2), max_bytes);
  if (has_prefix(value, 'b')) return parse_base64_binary(value.substr(2), max_bytes);
  return std::nullopt;
}

std::string binary_text(ByteView bytes) { return "0x" + hex_text(bytes); }

std::vector<std::string_view> split_list(std::string_view value) {
  std::vector<std::string_view> items;
  while (true) {
    size_t comma = value.find(',');
    std::string_view item = value.substr(0, comma);
    if (item.empty()) return {};
    items.push_back(item);
    if (comma == std::string_view::npos) return items;
    value.remove_prefix(comma + 1);
  }
}

Reserved reserved_answer(std::string_view value) {
  if (value == "Reject") return Reserved::kReject;
  if (value == "Irrelevant") return Reserved::kIrrelevant;
  if (value == "NotUnderstood") return Reserved::kNotUnderstood;
  return Reserved::kNo;
}

bool TextCollector::append(ByteView text) {
  if (pdus_ == limits::kMaxLoginPdus || text.size() > limits::kMaxTextBytes - text_.size()) {
    return false;
  }
  ++pdus_;
  text_.append(as_text(text));
  return true;
}

void TextCollector::clear() {
  text_.clear();
  pdus_ = 0;
}

}  // namespace sluice::iscsi
