// Small texts that survive damage to one copy: a file holds the text twice, in blocks of 4096
// bytes, padded with zero bytes. Each text ends with a line `crc32c CHECKSUM`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::control {

// At most, with its seal.
inline constexpr size_t kCopyBytes = 4096;

// Adds the line with the checksum of `text`, which ends with a newline.
std::string seal(std::string text);
// `text` without its seal; nullopt: the checksum differs.
std::optional<std::string_view> unseal(std::string_view text);

// Replaces the file's content by two copies of a sealed text. It survives a power cut when this
// returns. `shown` is the file's path in errors.
Result<void> write_copies(int directory, const std::string& name, std::string_view sealed,
                          const std::string& shown);
// The unsealed text of each undamaged copy. nullopt: there is no such file.
Result<std::optional<std::vector<std::string>>> read_copies(int directory, const std::string& name,
                                                            const std::string& shown);

}  // namespace sluice::control
