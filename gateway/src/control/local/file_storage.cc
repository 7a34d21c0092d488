#include "control/local/file_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "backend/size_text.h"

namespace sluice::control {

VolumeStorage::Opened FileStorage::open(const wire::DesiredVolume& volume) {
  std::string problem = home().replaced();
  if (!problem.empty()) return {.problem = problem};
  // Twice: the lock may have been released between the attempt and the query.
  for (int tries = 0; tries < 2; ++tries) {
    const Result<backend::Spec> spec = spec_of(volume);
    if (!spec) return {nullptr, false, spec.error()};
    Result<std::unique_ptr<backend::Backend>> opened = backend::open(spec.value());
    if (opened) return verified(std::move(opened).value());
    problem = opened.error();
    if (is_held()) return {nullptr, true, problem};
  }
  return {nullptr, false, problem};
}

int64_t FileStorage::allocated_bytes() const {
  struct stat status{};
  if (::fstatat(home().directory(), location_.c_str(), &status, 0) != 0) return 0;
  return int64_t{status.st_blocks} * 512;
}

Result<backend::Spec> FileStorage::spec_of(const wire::DesiredVolume& volume) const {
  backend::Spec spec;
  spec.block_size = static_cast<uint32_t>(volume.block_size());
  spec.write_cache = volume.write_cache();
  spec.create = false;
  spec.size = static_cast<uint64_t>(volume.size_bytes());
  const std::string path = home().path() + '/' + location_;
  const Result<FileDescriptor> file = open_beneath(home().directory(), location_, O_PATH, 0, path);
  if (!file) return Error{file.error()};
  struct stat status{};
  if (::fstat(file.value().get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{path + " is no regular file"};
  }
  spec.kind = "file";
  spec.path = path;
  // The image grows before the capacity that hosts see, so a smaller image has lost data.
  if (static_cast<uint64_t>(status.st_size) < spec.size) {
    return Error{path + " is " + backend::format_size(static_cast<uint64_t>(status.st_size)) +
                 ", recorded are " + backend::format_size(spec.size) +
                 ": its end is missing; restore the image from a backup"};
  }
  // It has already grown, but the order is older: volumes never shrink.
  if (static_cast<uint64_t>(status.st_size) > spec.size) spec.size = 0;
  return spec;
}

// Under the lock no other gateway replaces the file intentionally.
VolumeStorage::Opened FileStorage::verified(std::unique_ptr<backend::Backend> backend) const {
  const std::string path = home().path() + '/' + location_;
  const Result<FileDescriptor> file =
      open_beneath(home().directory(), location_, O_RDONLY, 0, path);
  if (!file) return {.problem = file.error()};
  const Result<void> same = verify_image(home().image_records(), location_, file.value().get());
  if (!same) return {.problem = same.error()};
  return {.backend = std::move(backend)};
}

bool FileStorage::is_held() const {
  const Result<FileDescriptor> probe = open_beneath(home().directory(), location_, O_RDONLY, 0, "");
  return probe && ::flock(probe.value().get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace sluice::control
