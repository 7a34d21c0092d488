#include "control/local/jobs.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "backend/lock.h"
#include "backend/size_text.h"
#include "control/local/image_identity.h"
#include "control/local/images.h"
#include "control/local/record_files.h"

namespace sluice::control {
namespace {

std::string shown(const PoolDirectory& pool, const std::string& location) {
  return pool.path() + '/' + location;
}

JobOutcome problem(std::string why) { return {.problem = std::move(why)}; }

JobOutcome never(std::string why) { return {.problem = std::move(why), .unsupported = true}; }

JobOutcome outcome(const Result<void>& done) {
  return problem(done ? std::string() : done.error());
}

Error failed(const char* what, const std::string& path) {
  return Error{"can't " + std::string(what) + ' ' + path + ": " + reason_of(errno)};
}

// Paths of records and sockets are not allowed for images.
Result<void> check_location(const PoolDirectory& pool, const std::string& location) {
  if (location.empty() || location.starts_with('/') || location.starts_with(".sluice")) {
    return Error{"\"" + location + "\" is no place for an image in " + pool.path()};
  }
  return {};
}

// Opens the directory of the image, creating it if `make`. *name: the image's name in it.
Result<FileDescriptor> parent_of(const PoolDirectory& pool, const std::string& location, bool make,
                                 std::string* name) {
  const size_t slash = location.rfind('/');
  *name = slash == std::string::npos ? location : location.substr(slash + 1);
  if (name->empty() || *name == "." || *name == "..") {
    return Error{"\"" + location + "\" doesn't name a file"};
  }
  std::string walked;
  for (size_t at = 0; slash != std::string::npos && at <= slash;) {
    const size_t end = location.find('/', at);
    walked = location.substr(0, end);
    at = end + 1;
    if (!make) continue;
    const Result<FileDescriptor> above = open_beneath(
        pool.directory(),
        walked.rfind('/') == std::string::npos ? "." : walked.substr(0, walked.rfind('/')),
        O_RDONLY | O_DIRECTORY, 0, shown(pool, walked));
    if (!above) return Error{above.error()};
    const std::string last = walked.substr(walked.rfind('/') + 1);  // npos + 1 is 0
    if (::mkdirat(above.value().get(), last.c_str(), 0700) != 0 && errno != EEXIST) {
      return failed("make the directory", shown(pool, walked));
    }
    if (::fsync(above.value().get()) != 0) return failed("sync", pool.path());
  }
  return open_beneath(pool.directory(), walked.empty() ? "." : walked, O_RDONLY | O_DIRECTORY, 0,
                      shown(pool, location));
}

Result<void> sync_with_name(int file, int parent, const std::string& path) {
  if (::fsync(file) != 0 || ::fsync(parent) != 0) return failed("sync", path);
  return {};
}

Result<void> grow(int file, int64_t size, const std::string& path) {
  struct stat status{};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{path + " is no regular file"};
  }
  if (status.st_size < size && ::ftruncate(file, size) != 0) return failed("grow", path);
  return {};
}

// Opens an image that a job reads, changes or deletes. Error: another file has its name, or it is
// shorter than the control plane recorded (`at_least` bytes; 0: not known). A job must not copy,
// extend or delete such a file: it would hide that data is missing.
Result<FileDescriptor> open_image(const PoolDirectory& pool, const std::string& location, int flags,
                                  int64_t at_least) {
  const std::string path = shown(pool, location);
  Result<FileDescriptor> file = open_beneath(pool.directory(), location, flags, 0, path);
  if (!file) return file;
  const Result<void> same = verify_image(pool.image_records(), location, file.value().get());
  if (!same) return Error{same.error()};
  struct stat status{};
  if (::fstat(file.value().get(), &status) != 0) return failed("look at", path);
  if (status.st_size < at_least) {
    return Error{path + " is " + backend::format_size(static_cast<uint64_t>(status.st_size)) +
                 ", recorded are " + backend::format_size(static_cast<uint64_t>(at_least)) +
                 ": it has lost its end; restore the file"};
  }
  return file;
}

bool is_absent(const PoolDirectory& pool, const std::string& location) {
  return ::faccessat(pool.directory(), location.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
         errno == ENOENT;
}

Result<void> create(const PoolDirectory& pool, const wire::CreateImage& job) {
  const std::string path = shown(pool, job.location());
  if (job.size_bytes() <= 0) return Error{path + ": its size must be more than 0"};
  Result<void> fine = check_location(pool, job.location());
  if (!fine) return fine;
  std::string name;
  const Result<FileDescriptor> parent = parent_of(pool, job.location(), true, &name);
  if (!parent) return Error{parent.error()};
  const Result<FileDescriptor> file =
      open_beneath(parent.value().get(), name, O_RDWR | O_CREAT, 0600, path);
  if (!file) return Error{file.error()};
  Result<void> grown = grow(file.value().get(), job.size_bytes(), path);
  if (!grown) return grown;
  Result<void> synced = sync_with_name(file.value().get(), parent.value().get(), path);
  if (!synced) return synced;
  return verify_image(pool.image_records(), job.location(), file.value().get());
}

Result<void> resize(const PoolDirectory& pool, const wire::ResizeImage& job) {
  const std::string path = shown(pool, job.location());
  Result<void> fine = check_location(pool, job.location());
  if (!fine) return fine;
  const Result<FileDescriptor> file = open_image(pool, job.location(), O_RDWR, job.present_bytes());
  if (!file) return Error{file.error()};
  Result<void> grown = grow(file.value().get(), job.size_bytes(), path);
  if (!grown) return grown;
  if (::fsync(file.value().get()) != 0) return failed("sync", path);
  return {};
}

Result<void> remove_image(const PoolDirectory& pool, const std::string& location) {
  Result<void> fine = check_location(pool, location);
  if (!fine) return fine;
  std::string name;
  const Result<FileDescriptor> parent = parent_of(pool, location, false, &name);
  if (!parent) return is_absent(pool, location) ? Result<void>() : Error{parent.error()};
  if (::unlinkat(parent.value().get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return failed("delete", shown(pool, location));
  }
  if (::fsync(parent.value().get()) != 0) return failed("sync", pool.path());
  return {};
}

// The image with its lock, if no process holds the lock; invalid: no such image. It is the lock
// that an owner takes, so even a gateway that is partitioned or hangs is detected (DESIGN R2).
Result<FileDescriptor> unheld(const PoolDirectory& pool, const std::string& location) {
  const std::string path = shown(pool, location);
  Result<FileDescriptor> image = open_image(pool, location, O_RDONLY | O_NONBLOCK, 0);
  if (!image) {
    if (is_absent(pool, location)) return FileDescriptor();
    return Error{"not deleted: " + image.error()};
  }
  const Result<void> locked = backend::lock_file(image.value().get(), path, false);
  if (!locked) return Error{"not deleted: " + locked.error()};
  return image;
}

// Does nothing while a process holds the data: that process would keep serving a deleted file and
// write its records again. The job is repeated later. The records are deleted after the data, and
// the lock is held until both are deleted, so that no process opens the data meanwhile.
Result<void> remove_volume(const PoolDirectory& pool, const wire::DeleteImage& job) {
  Result<void> fine = check_location(pool, job.location());
  if (!fine) return fine;
  const Result<FileDescriptor> image = unheld(pool, job.location());
  if (!image) return Error{image.error()};
  Result<void> removed = remove_image(pool, job.location());
  if (removed) removed = forget_image(pool.image_records(), job.location());
  if (!removed || job.volume_uid().empty()) return removed;
  return remove_records(pool.records(), job.volume_uid(), shown(pool, ".sluice"));
}

// The snapshot and its recorded identity.
Result<void> remove_snapshot(const PoolDirectory& pool, const std::string& location) {
  Result<void> fine = check_location(pool, location);
  if (!fine) return fine;
  const Result<FileDescriptor> image = open_image(pool, location, O_RDONLY | O_NONBLOCK, 0);
  if (!image && !is_absent(pool, location)) return Error{"not deleted: " + image.error()};
  Result<void> removed = remove_image(pool, location);
  return removed ? forget_image(pool.image_records(), location) : removed;
}

bool cannot_reflink(int error) {
  return error == EOPNOTSUPP || error == EINVAL || error == EXDEV || error == ENOTTY;
}

// What happens if `to` exists.
enum class Over : uint8_t { kKeeps, kReplaces };

// The copy is created under another name, so that an incomplete one is never treated as complete.
// `source_bytes`: size of the source that the control plane recorded; 0: unknown.
JobOutcome reflink(const PoolDirectory& pool, const std::string& from, const std::string& to,
                   int64_t size, int64_t source_bytes, Over over = Over::kKeeps) {
  for (const std::string* location : {&from, &to}) {
    Result<void> fine = check_location(pool, *location);
    if (!fine) return outcome(fine);
  }
  const std::string path = shown(pool, to);
  std::string name;
  const Result<FileDescriptor> parent = parent_of(pool, to, true, &name);
  if (!parent) return problem(parent.error());
  const bool there =
      ::faccessat(parent.value().get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && over == Over::kKeeps) return {};
  const Result<FileDescriptor> source = open_image(pool, from, O_RDONLY, source_bytes);
  if (!source) return problem(source.error());
  const std::string beside = name + ".new";
  const Result<FileDescriptor> copy =
      open_beneath(parent.value().get(), beside, O_RDWR | O_CREAT | O_TRUNC, 0600, path);
  if (!copy) return problem(copy.error());
  if (::ioctl(copy.value().get(), FICLONE, source.value().get()) != 0) {
    const int error = errno;
    ::unlinkat(parent.value().get(), beside.c_str(), 0);
    if (cannot_reflink(error)) {
      return never("the filesystem of " + pool.path() +
                   " can't share blocks between files (reflink); put the pool on XFS or Btrfs");
    }
    return problem("can't copy " + shown(pool, from) + ": " + reason_of(error));
  }
  Result<void> grown = grow(copy.value().get(), size, path);
  if (!grown) return outcome(grown);
  if (::fsync(copy.value().get()) != 0 ||
      ::renameat(parent.value().get(), beside.c_str(), parent.value().get(), name.c_str()) != 0 ||
      ::fsync(parent.value().get()) != 0) {
    return problem(failed("finish", path).message);
  }
  return {};
}

// Records the identity of an image or a snapshot that was made as a copy.
JobOutcome record_copy(const PoolDirectory& pool, const std::string& location, Over over) {
  const std::string path = shown(pool, location);
  const Result<FileDescriptor> file = open_beneath(pool.directory(), location, O_RDONLY, 0, path);
  if (!file) return problem(file.error());
  const ImageRecords where = pool.image_records();
  return outcome(over == Over::kReplaces ? record_image(where, location, file.value().get())
                                         : verify_image(where, location, file.value().get()));
}

JobOutcome clone(const PoolDirectory& pool, const wire::CloneImage& job) {
  JobOutcome copied =
      reflink(pool, job.source_location(), job.location(), job.size_bytes(), job.source_bytes());
  return copied.problem.empty() ? record_copy(pool, job.location(), Over::kKeeps) : copied;
}

// A gateway that has the volume open has its lock, on the file that would be replaced.
JobOutcome roll_back(const PoolDirectory& pool, const wire::RollBackImage& job) {
  const std::string path = shown(pool, job.location());
  const Result<FileDescriptor> file = open_image(pool, job.location(), O_RDONLY, 0);
  if (!file) return problem(file.error());
  struct stat status{};
  if (::fstat(file.value().get(), &status) != 0) return problem(failed("look at", path).message);
  if (::flock(file.value().get(), LOCK_EX | LOCK_NB) != 0) {
    return problem(path + " is in use; take the volume from its targets first");
  }
  // If it is interrupted between the two steps, the job is repeated; no gateway gets the volume
  // before it is done.
  JobOutcome copied =
      reflink(pool, job.snapshot_location(), job.location(), status.st_size, 0, Over::kReplaces);
  return copied.problem.empty() ? record_copy(pool, job.location(), Over::kReplaces) : copied;
}

// The control plane may consider an owner dead that is only partitioned and still serves its hosts.
// Such an owner has the lock, and a snapshot would split its writes.
JobOutcome snapshot_unserved(const PoolDirectory& pool, const wire::CreateSnapshotImage& job) {
  const std::string path = shown(pool, job.location());
  const Result<FileDescriptor> file =
      open_beneath(pool.directory(), job.location(), O_RDONLY, 0, path);
  if (!file) return problem(file.error());
  if (::flock(file.value().get(), LOCK_EX | LOCK_NB) != 0) {
    return problem(path +
                   " is in use by a gateway that is not connected; it is taken once that is");
  }
  return reflink(pool, job.location(), job.snapshot_location(), 0, job.volume_bytes());
}

JobOutcome snapshot(const PoolDirectory& pool, const wire::CreateSnapshotImage& job,
                    const BetweenCommands& between) {
  JobOutcome taken;
  const Result<void> held = between(job.volume_uid(), [&](bool served) {
    taken = served ? reflink(pool, job.location(), job.snapshot_location(), 0, job.volume_bytes())
                   : snapshot_unserved(pool, job);
  });
  if (!held) return problem(held.error());
  return taken.problem.empty() ? record_copy(pool, job.snapshot_location(), Over::kKeeps) : taken;
}

// The volume files by name, in the control plane's form.
JobOutcome list_images(const PoolDirectory& pool) {
  Result<std::vector<std::string>> images = images_in(pool.directory(), pool.path());
  if (!images) return problem(images.error());
  return {.images = std::move(images).value()};
}

}  // namespace

JobOutcome run_job(const PoolDirectory& pool, const wire::Job& job,
                   const BetweenCommands& between) {
  switch (job.action_case()) {
    case wire::Job::kCreate:
      return outcome(create(pool, job.create()));
    case wire::Job::kResize:
      return outcome(resize(pool, job.resize()));
    case wire::Job::kDelete:
      return outcome(remove_volume(pool, job.delete_()));
    case wire::Job::kSnapshot:
      return snapshot(pool, job.snapshot(), between);
    case wire::Job::kDeleteSnapshot:
      return outcome(remove_snapshot(pool, job.delete_snapshot().snapshot_location()));
    case wire::Job::kClone:
      return clone(pool, job.clone());
    case wire::Job::kRollBack:
      return roll_back(pool, job.roll_back());
    case wire::Job::kListImages:
      return list_images(pool);
    case wire::Job::kFenceClients:
    case wire::Job::kFlatten:
    case wire::Job::kAdopt:
      return never("a local pool has no such thing; it is a job for pools of Ceph");
    case wire::Job::ACTION_NOT_SET:
      break;
  }
  return never("this release doesn't know what the job asks for");
}

}  // namespace sluice::control
