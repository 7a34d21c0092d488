// Small files and paths below a directory that other processes may change.
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

// Opens `path` below `directory`. No component may be `..`, absolute or a symbolic link (openat2,
// RESOLVE_BENEATH). `shown` is the path in errors. The error contains cause and remedy.
Result<FileDescriptor> open_beneath(int directory, const std::string& path, int flags, mode_t mode,
                                    const std::string& shown);

// What a written text survives.
enum class Outlasts : uint8_t { kProcess, kPowerCut };

// How a text is changed later. kInPlace: parts of it are overwritten, for which a file system that
// copies on write is asked to use the same blocks (Btrfs: FS_NOCOW_FL), so that no free space is
// needed then.
enum class Updates : uint8_t { kAsAWhole, kInPlace };

// Replaces the file `name`; readers see either the old or the new text. Writes a temporary file
// with mode 0600 and renames it. With kPowerCut the file and the directory are synced, so that a
// power failure leaves the old or the new text; otherwise it may leave anything. *renamed (may be
// null): whether `name` may already have the new text although an error is returned. After an error
// errno is that of the failed call.
Result<void> replace_file(int directory, const std::string& name, std::string_view text,
                          const std::string& shown, bool* renamed = nullptr,
                          Outlasts outlasts = Outlasts::kPowerCut,
                          Updates updates = Updates::kAsAWhole);

// nullopt: no such file.
Result<std::optional<std::string>> read_small_file(int directory, const std::string& name,
                                                   size_t limit, const std::string& shown);

// Locks a file that exists only for this purpose, and creates it if necessary. The holder has
// exclusive access to what it guards. Waits for at most `patience` (0: does not wait). `shown` is
// the guarded object in errors.
Result<FileDescriptor> guard_file(int directory, const std::string& name, const std::string& shown,
                                  Nanos patience);

// Whether an errno means that the filesystem, or the quota of the gateway's user, is full.
bool is_out_of_space(int error);

// The reason of an errno with the remedy, such as "no space left on device; free space on the
// filesystem or add to it".
std::string reason_of(int error);

}  // namespace sluice::control
