#include "iscsi/login/names.h"

#include <algorithm>

#include "base/hex.h"
#include "base/limits.h"

namespace sluice::iscsi {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of the UTF-8 sequence at the front of `text`, 0 if it is malformed (RFC 3629 §4).
size_t utf8_sequence(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  size_t size = byte(0) >= 0xf0 && byte(0) <= 0xf4   ? 4
                : byte(0) >= 0xe0 && byte(0) <= 0xef ? 3
                : byte(0) >= 0xc2 && byte(0) <= 0xdf ? 2
                                                     : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  bool surrogate = byte(0) == 0xed && byte(1) > 0x9f;
  bool beyond = byte(0) == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : size;
}

// Of ASCII only letters, digits, '-', '.' and ':' may stand in a name (RFC 3722 §6).
bool only_name_characters(std::string_view name) {
  while (!name.empty()) {
    char c = name[0];
    size_t used = 1;
    if ((static_cast<uint8_t>(c) & 0x80) != 0) {
      used = utf8_sequence(name);
      if (used == 0) return false;
    } else if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '.' && c != ':') {
      return false;
    }
    name.remove_prefix(used);
  }
  return true;
}

// iqn.yyyy-mm.reversed.domain[:anything]
bool is_iqn(std::string_view name) {
  name.remove_prefix(4);
  if (name.size() < 9 || name[4] != '-' || name[7] != '.') return false;
  for (size_t i : {0, 1, 2, 3, 5, 6}) {
    if (!is_digit(name[i])) return false;
  }
  int month = (name[5] - '0') * 10 + (name[6] - '0');
  if (month < 1 || month > 12) return false;
  std::string_view rest = name.substr(8);
  return rest[0] != ':' && rest[0] != '.' && only_name_characters(rest);
}

bool is_hex_name(std::string_view digits, size_t size, size_t other_size) {
  return (digits.size() == size || digits.size() == other_size) &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return hex_value(c) >= 0; });
}

}  // namespace

Result<std::string> normalise_name(std::string_view name) {
  if (name.size() > limits::kMaxIscsiName) return Error{"the iSCSI name is longer than 223 bytes"};
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string_view view = lower;
  bool valid = (view.starts_with("iqn.") && is_iqn(view)) ||
               (view.starts_with("eui.") && is_hex_name(view.substr(4), 16, 16)) ||
               (view.starts_with("naa.") && is_hex_name(view.substr(4), 16, 32));
  if (!valid) {
    return Error{
        "an iSCSI name must have the form iqn.yyyy-mm.domain[:name], eui.<16 hex digits> or "
        "naa.<16 or 32 hex digits>"};
  }
  return lower;
}

}  // namespace sluice::iscsi
