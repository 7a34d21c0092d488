// The table of all configuration keys: type, default, bounds, meaning. The reader (section.h) takes
// its bounds from it, CONFIGURATION.md is rendered from it, and a test compares its defaults with
// config.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::config {

enum class KeyType : uint8_t {
  kText,      // min..max bytes
  kTexts,     // a list of min..max of them
  kNumber,    // min..max
  kNumbers,   // a list of numbers, each min..max
  kSize,      // min..max bytes, "64MiB"
  kDuration,  // min..max nanoseconds, "1500ms"
  kSwitch,    // on, off
  kChoice,    // one of `choices`
  kSection,   // a section with keys
  kSections,  // a list of min..max such
};

struct Key {
  std::string_view name;
  KeyType type = KeyType::kText;
  uint64_t min = 0;
  uint64_t max = 0;
  std::string_view choices;   // "text|json"
  std::string_view fallback;  // in the form of the file; in parentheses: how it is derived
  bool required = false;
  std::string_view meaning;
};

// The keys of one section, in the order of the reference; empty for an unknown section.
std::span<const Key> keys_of(std::string_view section);
const Key& find_key(std::string_view section, std::string_view name);  // the key must exist

// "1 to 64", "32MiB to 64GiB", "on or off", "one of text, json".
std::string allowed_text(const Key& key);

// One mapping of the file: "" is the top level, "luns" is every entry of such a list.
struct Schema {
  std::string_view section;
  std::string_view title;
  std::string_view meaning;
  std::span<const Key> keys;
};
std::span<const Schema> schemas();

}  // namespace sluice::config
