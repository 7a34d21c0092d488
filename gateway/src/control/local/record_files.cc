#include "control/local/record_files.h"

#include <unistd.h>

#include <cerrno>

#include "control/local/files.h"

namespace sluice::control {

// One sync suffices: after an earlier power failure the job is repeated and removes every name
// again.
Result<void> remove_records(int directory, const std::string& volume, const std::string& shown) {
  const std::string path = shown + '/' + volume;
  if (volume.empty() || volume.find('/') != std::string::npos) {
    return Error{"\"" + volume + "\" is no uid of a volume"};
  }
  // Does not wait for a hanging writer: the job is repeated.
  const Result<FileDescriptor> guarded = guard_file(directory, volume + kGuardFile, path + ".*", 0);
  if (!guarded) return Error{guarded.error()};
  for (const char* name : kRecordFiles) {
    if (::unlinkat(directory, (volume + name).c_str(), 0) != 0 && errno != ENOENT) {
      return Error{"can't delete " + path + name + ": " + reason_of(errno)};
    }
  }
  if (::fsync(directory) != 0) return Error{"can't sync " + shown + ": " + reason_of(errno)};
  return {};
}

}  // namespace sluice::control
