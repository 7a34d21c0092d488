#include "control/record_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "control/files.h"

namespace sluice::control {

// One sync is enough: after a power cut before it the job comes again, and tries every name again.
Result<void> remove_records(int directory, const std::string& volume, const std::string& shown) {
  const std::string path = shown + '/' + volume;
  if (volume.empty() || volume.find('/') != std::string::npos) {
    return Error{"\"" + volume + "\" is no uid of a volume"};
  }
  // A writer that has hung is not waited for: the job comes again.
  const FileDescriptor guard(::openat(directory, (volume + kGuardFile).c_str(),
                                      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!guard.valid() || ::flock(guard.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{"can't guard the records " + path + ".*: " + reason_of(errno)};
  }
  for (const char* name : kRecordFiles) {
    if (::unlinkat(directory, (volume + name).c_str(), 0) != 0 && errno != ENOENT) {
      return Error{"can't delete " + path + name + ": " + reason_of(errno)};
    }
  }
  if (::fsync(directory) != 0) return Error{"can't sync " + shown + ": " + reason_of(errno)};
  return {};
}

}  // namespace sluice::control
