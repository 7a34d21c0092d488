#include "base/record_text.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <charconv>

#include "base/hex.h"

namespace sluice {
namespace {

constexpr std::string_view kSeal = "crc32c ";
constexpr size_t kSealBytes = 16;  // "crc32c 01234567\n"

std::string seal_of(std::string_view text) {
  return std::string(kSeal) + checksum_text(text) + '\n';
}

}  // namespace

std::string checksum_text(std::string_view text) {
  // ISA-L's prototype lacks a const; it only reads.
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  return hex_number(~crc32_iscsi(bytes, static_cast<int>(text.size()), ~0u), 8);
}

std::string seal(std::string text) {
  const std::string appended = seal_of(text);
  return std::move(text) + appended;
}

std::optional<std::string_view> unseal(std::string_view sealed) {
  if (sealed.size() < kSealBytes) return std::nullopt;
  const std::string_view text = sealed.substr(0, sealed.size() - kSealBytes);
  if (sealed.substr(text.size()) != seal_of(text)) return std::nullopt;
  return text;
}

std::optional<std::string_view> unseal_after_heading(std::string_view text,
                                                     std::string_view heading) {
  if (!text.starts_with(heading)) return std::nullopt;
  text.remove_prefix(heading.size());
  if (text.size() < 1 + kSealBytes || text.front() != '\n') return std::nullopt;
  const std::string_view body = text.substr(1 + kSealBytes);
  if (text.substr(1, kSealBytes) != seal_of(body)) return std::nullopt;
  return body;
}

std::string_view WordReader::word() {
  const size_t end = std::min(rest_.find(' '), rest_.size());
  const std::string_view word = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (word.empty()) bad_ = true;
  return word;
}

uint64_t WordReader::number(uint64_t max) { return parse(word(), 10, 1, 20, max); }

uint64_t WordReader::hex_number(unsigned digits) {
  return parse(word(), 16, digits, digits, UINT64_MAX);
}

uint64_t WordReader::parse(std::string_view text, int base, size_t least, size_t most,
                           uint64_t max) {
  uint64_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value, base);
  if (error == std::errc() && stop == end && text.size() >= least && text.size() <= most &&
      value <= max) {
    return value;
  }
  bad_ = true;
  return 0;
}

RecordReader::RecordReader(std::string_view text, std::string_view heading) : rest_(text) {
  if (!text.starts_with(heading) || text.size() == heading.size() || text[heading.size()] != '\n') {
    bad_ = true;
    return;
  }
  rest_.remove_prefix(heading.size() + 1);
}

bool RecordReader::has(std::string_view name) const {
  return rest_.starts_with(name) && rest_.size() > name.size() && rest_[name.size()] == ' ';
}

std::string_view RecordReader::text(std::string_view name) {
  const size_t end = rest_.find('\n');
  if (bad_ || end == std::string_view::npos || !has(name)) {
    bad_ = true;
    return {};
  }
  const std::string_view value = rest_.substr(name.size() + 1, end - name.size() - 1);
  rest_.remove_prefix(end + 1);
  return value;
}

uint64_t RecordReader::number(std::string_view name, uint64_t max) {
  WordReader words(text(name));
  const uint64_t value = words.number(max);
  if (!words.complete()) bad_ = true;
  return value;
}

}  // namespace sluice
