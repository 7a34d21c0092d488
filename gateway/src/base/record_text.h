// Small records as text, in files, on devices and in objects of Ceph:
//
//   sluice-volume 1          heading: name and version of the format
//   epoch 7                  lines "NAME VALUE", in a fixed order
//   ...
//   crc32c 8a9136aa          seal: CRC32C over everything above
//
// The readers accept only what the writers produce: they reject a missing, additional or reordered
// line, and a number with a sign, a space or too many digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// CRC32C (Castagnoli, RFC 3385) as eight hexadecimal digits.
std::string checksum_text(std::string_view text);

// Appends the seal of `text`, which ends with a newline or is binary.
std::string seal(std::string text);
// `sealed` without its seal; nullopt: it is too short, or the checksum does not match.
std::optional<std::string_view> unseal(std::string_view sealed);
// Of formats before 2026-11-26 that have the seal as their second line: what follows the seal, over
// which it counts. `heading` without the newline.
std::optional<std::string_view> unseal_after_heading(std::string_view text,
                                                     std::string_view heading);

// Reads the words of one line, which one space separates. After an error it stays bad.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : rest_(line) {}

  std::string_view word();               // not empty
  uint64_t number(uint64_t max);         // decimal, 1 to 20 digits
  uint64_t hex_number(unsigned digits);  // exactly `digits` hexadecimal digits
  void fail() { bad_ = true; }
  bool bad() const { return bad_; }
  bool complete() const { return !bad_ && rest_.empty(); }  // every word was read

 private:
  uint64_t parse(std::string_view text, int base, size_t least, size_t most, uint64_t max);

  std::string_view rest_;
  bool bad_ = false;
};

// Reads the lines of an unsealed record. After an error it stays bad.
class RecordReader {
 public:
  // `heading` without the newline; a text with another heading is bad.
  RecordReader(std::string_view text, std::string_view heading);

  bool has(std::string_view name) const;  // the next line is "`name` ..."
  std::string_view text(std::string_view name);
  uint64_t number(std::string_view name, uint64_t max = UINT64_MAX);
  void fail() { bad_ = true; }
  bool bad() const { return bad_; }
  std::string_view rest() const { return rest_; }           // the lines that were not read
  bool complete() const { return !bad_ && rest_.empty(); }  // every line was read

 private:
  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace sluice
