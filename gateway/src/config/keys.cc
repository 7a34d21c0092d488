#include "config/keys.h"

#include <stdexcept>

#include "backend/size_text.h"
#include "config/duration.h"

namespace sluice::config {
namespace {

using enum KeyType;

std::string bounds(const Key& key, std::string (*format)(uint64_t)) {
  return format(key.min) + " to " + format(key.max);
}

std::string list_of(std::string_view choices) {
  std::string text = "one of ";
  for (const char c : choices) text += c == '|' ? ", " : std::string(1, c);
  return text;
}

std::string number_text(uint64_t n) { return std::to_string(n); }
std::string size_text(uint64_t n) {
  return n == uint64_t{INT64_MAX} ? "8EiB" : backend::format_size(n);
}
std::string duration_text(uint64_t n) { return format_duration(static_cast<Nanos>(n)); }

}  // namespace

std::span<const Key> keys_of(std::string_view section) {
  for (const Schema& schema : schemas()) {
    if (schema.section == section) return schema.keys;
  }
  return {};
}

const Key& find_key(std::string_view section, std::string_view name) {
  for (const Key& key : keys_of(section)) {
    if (key.name == name) return key;
  }
  throw std::logic_error("no such key: " + std::string(section) + "." + std::string(name));
}

std::string allowed_text(const Key& key) {
  switch (key.type) {
    case kText:
      return key.min == key.max ? number_text(key.min) + " bytes of text"
                                : bounds(key, number_text) + " bytes of text";
    case kTexts:
      return "a list of " + bounds(key, number_text);
    case kNumber:
      return bounds(key, number_text);
    case kNumbers:
      return "a list of numbers, " + bounds(key, number_text);
    case kSize:
      return bounds(key, size_text);
    case kDuration:
      return bounds(key, duration_text);
    case kSwitch:
      return "on or off";
    case kChoice:
      return list_of(key.choices);
    case kSection:
      return "a section";
    case kSections:
      return "a list of " + bounds(key, number_text);
  }
  return {};
}

}  // namespace sluice::config
