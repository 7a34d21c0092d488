// The text format of login and text negotiation (RFC 7143 §6.1): key=value pairs, each followed by
// at least one zero byte, and the formats of values. The input is untrusted: parsers read only
// within the given view, and an inexact format is not a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace sluice::iscsi {

// Refer to the parsed text.
struct TextPair {
  std::string_view key;
  std::string_view value;
};

// All pairs in their order. Error: a pair without '='; a key that is not a standard-label or longer
// than limits::kMaxKeyName; more than limits::kMaxKeysPerExchange pairs; a key with two different
// values; a text without a final zero byte. RFC 7143 §6.2 forbids any repetition; an identical one
// is harmless and dropped.
Result<std::vector<TextPair>> parse_text(std::string_view text);

// Appends "key=value" and the zero byte.
void append_pair(std::string* text, std::string_view key, std::string_view value);

std::optional<bool> parse_boolean(std::string_view value);  // "Yes" or "No", exactly
std::string_view boolean_text(bool value);
std::optional<uint64_t> parse_number(std::string_view value);  // decimal- or hex-constant
// numerical-range "low~high"; a single number is a range of one.
std::optional<std::pair<uint64_t, uint64_t>> parse_range(std::string_view value);
// hex-constant or base64-constant, at most `max_bytes` of binary.
std::optional<std::vector<uint8_t>> parse_binary(std::string_view value, size_t max_bytes);
std::string binary_text(ByteView bytes);  // as a hex-constant

// The items of a list-of-values; empty if an item is empty.
std::vector<std::string_view> split_list(std::string_view value);

// Whether `value` is one of None, Reject, Irrelevant, NotUnderstood (RFC 7143 §6.2). Only the last
// three mean that a key was not negotiated.
enum class Reserved : uint8_t { kNo, kReject, kIrrelevant, kNotUnderstood };
Reserved reserved_answer(std::string_view value);

// Joins the text of several PDUs that carry the C bit (RFC 7143 §6.2), within
// limits::kMaxTextBytes and limits::kMaxLoginPdus.
class TextCollector {
 public:
  // False: a limit was exceeded; the exchange must end.
  bool append(ByteView text);
  std::string_view text() const { return text_; }
  unsigned pdus() const { return pdus_; }
  void clear();

 private:
  std::string text_;
  unsigned pdus_ = 0;
};

}  // namespace sluice::iscsi
