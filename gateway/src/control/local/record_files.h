// The files that a volume of a local pool has in `.sluice`, by their names behind the volume's uid,
// and their end.
#pragma once

#include <array>
#include <string>

#include "base/result.h"

namespace sluice::control {

inline constexpr const char* kRecordFile = ".volume";
inline constexpr const char* kCopyFile = ".copy";
inline constexpr const char* kClaimsFile = ".holder";
inline constexpr const char* kGuardFile = ".guard";
// With what replace_file() leaves where it was cut short. The guard last.
inline constexpr std::array kRecordFiles = {kRecordFile, ".volume.new", kCopyFile, ".copy.new",
                                            kClaimsFile, ".holder.new", kGuardFile};

// Once the volume's data is gone for good: for ever, its uid never comes again. `shown` is how
// errors call the directory.
Result<void> remove_records(int directory, const std::string& volume, const std::string& shown);

}  // namespace sluice::control
