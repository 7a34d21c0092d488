// The names of a local volume's files in `.sluice`, appended to the volume's uid, and their
// removal.
#pragma once

#include <array>
#include <string>

#include "base/result.h"

namespace sluice::control {

inline constexpr const char* kRecordFile = ".volume";
inline constexpr const char* kCopyFile = ".copy";
inline constexpr const char* kClaimsFile = ".holder";
inline constexpr const char* kSlotsFile = ".slots";
inline constexpr const char* kGuardFile = ".guard";
// Includes the temporary files that an interrupted replace_file() leaves. The guard is last.
inline constexpr std::array kRecordFiles = {kRecordFile, ".volume.new", kCopyFile,
                                            ".copy.new", kClaimsFile,   ".holder.new",
                                            kSlotsFile,  ".slots.new",  kGuardFile};

// Call it after the volume's data was permanently deleted; its uid is never reused. `shown` is the
// directory in errors.
Result<void> remove_records(int directory, const std::string& volume, const std::string& shown);

}  // namespace sluice::control
