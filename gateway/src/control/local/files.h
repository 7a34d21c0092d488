// Small files and paths below a directory that others may write to as well.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "backend/descriptor.h"
#include "base/clock.h"
#include "base/result.h"

namespace sluice::control {

using backend::FileDescriptor;

Result<FileDescriptor> open_directory(const std::string& path);

// `path` below `directory`, of which no component may be `..`, absolute or a symbolic link
// (openat2, RESOLVE_BENEATH). `shown` is how errors call it. The error names cause and mend.
Result<FileDescriptor> open_beneath(int directory, const std::string& path, int flags, mode_t mode,
                                    const std::string& shown);

// What a text that was written outlasts for certain.
enum class Outlasts : uint8_t { kProcess, kPowerCut };

// Replaces `name`, whole for whoever reads it: written beside it with mode 0600 and renamed. What
// has to outlast a power cut is synced before, and the directory after, so that the cut leaves the
// old text or the new one; else the cut may leave anything. *renamed (may be null): whether the new
// text may already be what the name shows, though an error came.
Result<void> replace_file(int directory, const std::string& name, std::string_view text,
                          const std::string& shown, bool* renamed = nullptr,
                          Outlasts outlasts = Outlasts::kPowerCut);

// nullopt: there is no such file.
Result<std::optional<std::string>> read_small_file(int directory, const std::string& name,
                                                   size_t limit, const std::string& shown);

// The lock of a file that is there for nothing else, made if need be: who holds it is alone in what
// it guards. Waits for as long as `patience` (0: not at all); `shown` is what is guarded.
Result<FileDescriptor> guard_file(int directory, const std::string& name, const std::string& shown,
                                  Nanos patience);

// "no space left on device; free space on the filesystem or add to it", for the errno given.
std::string reason_of(int error);

// CRC32C (Castagnoli, RFC 3385), eight hexadecimal digits.
std::string checksum_text(std::string_view text);

}  // namespace sluice::control
