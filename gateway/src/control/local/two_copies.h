// Small texts that survive damage to one copy: a file holds the text twice, in blocks of 4096
// bytes, padded with zero bytes. Each text is sealed (base/record_text.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::control {

// Maximum size including the checksum.
inline constexpr size_t kCopyBytes = 4096;

inline constexpr size_t kCopies = 2;

// Replaces the file's content by two copies of a sealed text. Durable across a power failure when
// this returns. `shown` is the file's path in errors.
Result<void> write_copies(int directory, const std::string& name, std::string_view sealed,
                          const std::string& shown);
// The unsealed text of each undamaged copy. nullopt: no such file.
Result<std::optional<std::vector<std::string>>> read_copies(int directory, const std::string& name,
                                                            const std::string& shown);

}  // namespace sluice::control
