#include "backend/file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "backend/atomic_write.h"
#include "backend/block_queue.h"
#include "backend/failure.h"
#include "backend/lock.h"
#include "backend/size_text.h"
#include "backend/zeros.h"
#include "base/limits.h"

namespace sluice::backend {
namespace {

std::string open_remedy(int error, const Spec& spec) {
  switch (error) {
    case ENOENT:
      return spec.create && !spec.read_only ? "create its directory first"
                                            : "create it first, or use create=on and size=";
    case EACCES:
    case EPERM:
      return "give the gateway's user access to it";
    case EROFS:
      return "use read-only=on or remount the filesystem";
    case EINVAL:
      return spec.direct ? "its filesystem may lack direct I/O: use io=buffered" : "";
    default:
      return "";
  }
}

// Opens without side effects if it is not a regular file (opening a FIFO could block).
Result<FileDescriptor> open_existing(const Spec& spec, int flags) {
  struct stat status;
  if (stat(spec.path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return fail(spec.path, S_ISBLK(status.st_mode) ? "is a block device" : "is no regular file",
                S_ISBLK(status.st_mode) ? "use block:" + spec.path : "name a regular file");
  }
  FileDescriptor fd(::open(spec.path.c_str(), flags));
  if (!fd.valid() && errno != ENOENT) {
    return fail(spec.path, "can't open: " + why(errno), open_remedy(errno, spec));
  }
  return fd;
}

// The new name must survive a power failure, as the data does.
Result<void> sync_directory(const std::string& path) {
  std::filesystem::path parent = std::filesystem::path(path).parent_path();
  FileDescriptor fd(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) {
    return fail(path, "can't sync its directory: " + why(errno), "check the filesystem");
  }
  return {};
}

Result<FileDescriptor> open_or_create(const Spec& spec) {
  const int flags = (spec.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | (spec.direct ? O_DIRECT : 0);
  Result<FileDescriptor> existing = open_existing(spec, flags);
  if (!existing || existing->valid()) return existing;
  if (!spec.create || spec.read_only) {
    return fail(spec.path, "doesn't exist", open_remedy(ENOENT, spec));
  }
  if (spec.size == 0) return fail(spec.path, "doesn't exist", "give size= to create it");
  FileDescriptor fd(::open(spec.path.c_str(), flags | O_CREAT, 0600));
  if (!fd.valid()) {
    return fail(spec.path, "can't create: " + why(errno), open_remedy(errno, spec));
  }
  Result<void> synced = sync_directory(spec.path);
  if (!synced) return Error{synced.error()};
  return fd;
}

// Between the open and the lock the former holder may have replaced the file; a lock on the old one
// would protect nothing.
Result<FileDescriptor> open_locked(const Spec& spec) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    Result<FileDescriptor> fd = open_or_create(spec);
    if (!fd) return fd;
    OpenFile::wait_for_closing(device_of(fd->get()), limits::kUnitLeaves);
    Result<void> locked = lock_file(fd->get(), spec.path, spec.read_only);
    if (!locked) return Error{locked.error()};
    struct stat ours, named;
    if (fstat(fd->get(), &ours) == 0 && stat(spec.path.c_str(), &named) == 0 &&
        ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) {
      return fd;
    }
  }
  return fail(spec.path, "keeps being replaced", "stop what replaces it");
}

Result<uint64_t> adopt_size(int fd, const Spec& spec) {
  struct stat status;
  if (fstat(fd, &status) != 0) return fail(spec.path, why(errno), "check the filesystem");
  auto size = static_cast<uint64_t>(status.st_size);
  if (spec.size != 0 && size > spec.size) {
    return fail(spec.path,
                "holds " + format_size(size) + ", more than size=" + format_size(spec.size) +
                    ", and shrinking would lose data",
                "raise size= or leave it out");
  }
  if (size < spec.size) {
    if (spec.read_only) {
      return fail(spec.path, "is smaller than size=" + format_size(spec.size),
                  "leave size= out or open it writable to grow it");
    }
    if (ftruncate(fd, static_cast<off_t>(spec.size)) != 0 || fsync(fd) != 0) {
      return fail(spec.path, "can't grow to " + format_size(spec.size) + ": " + why(errno),
                  errno == EFBIG ? "the filesystem's limit is lower: choose a smaller size" : "");
    }
    size = spec.size;
  }
  if (size == 0) return fail(spec.path, "is empty", "give size=");
  if (size % spec.block_size != 0) {
    const uint64_t rounded = (size / spec.block_size + 1) * spec.block_size;
    return fail(spec.path, std::to_string(size) + " bytes are no multiple of the block size",
                "truncate -s " + std::to_string(rounded) + " '" + spec.path + "'");
  }
  return size;
}

// Memory alignment for direct I/O. Error: this LUN's blocks are too small for it.
Result<uint32_t> direct_alignment(int fd, const Spec& spec) {
  uint32_t memory = 4096;
  uint32_t offset = 0;
#ifdef STATX_DIOALIGN
  struct statx status;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) {
      return fail(spec.path, "doesn't support direct I/O", "use io=buffered");
    }
    memory = status.stx_dio_mem_align;
    offset = status.stx_dio_offset_align;
  }
#endif
  if (offset == 0) {
    // The kernel does not report it, so one block is read as a test: a refusal means its alignment.
    alignas(4096) static thread_local uint8_t probe[4096];
    const bool refused =
        pread(fd, probe, spec.block_size, static_cast<off_t>(spec.block_size)) < 0 &&
        errno == EINVAL;
    offset = refused ? 4096 : spec.block_size;
  }
  if (offset > spec.block_size) {
    return fail(spec.path,
                "its filesystem does direct I/O in units of " + std::to_string(offset) +
                    " bytes, more than block-size=" + std::to_string(spec.block_size),
                "use block-size=4096 for a new volume, or io=buffered");
  }
  return memory;
}

// Loads the list of the file's extents into the kernel. ext4 otherwise reads it from the device in
// a call with RWF_NOWAIT, on a reactor. Other file systems refuse the flag, and return EAGAIN from
// such a call.
void load_extents(int fd) {
  fiemap request;  // it ends with an array of size 0, so it can't be initialised with {}
  std::memset(&request, 0, sizeof request);
  request.fm_length = FIEMAP_MAX_OFFSET;
  request.fm_flags = FIEMAP_FLAG_CACHE;
  ioctl(fd, FS_IOC_FIEMAP, &request);
}

}  // namespace

Result<std::unique_ptr<Backend>> File::open(const Spec& spec) {
  if (!zeros()) return fail(spec.path, "no address space left", "free memory");
  Result<FileDescriptor> fd = open_locked(spec);
  if (!fd) return Error{fd.error()};
  Result<uint64_t> size = adopt_size(fd->get(), spec);
  if (!size) return Error{size.error()};

  struct statfs filesystem;
  struct stat status;
  if (fstatfs(fd->get(), &filesystem) != 0 || fstat(fd->get(), &status) != 0) {
    return fail(spec.path, why(errno), "check the filesystem");
  }
  Setup setup;
  setup.size = *size;
  setup.info.read_only = spec.read_only;
  if (spec.direct) {
    Result<uint32_t> alignment = direct_alignment(fd->get(), spec);
    if (!alignment) return Error{alignment.error()};
    setup.info.memory_alignment = *alignment;
    const AtomicWrites atomic = atomic_writes_of(fd->get(), spec.block_size);
    setup.info.atomic_write_bytes = atomic.bytes;
    setup.atomic_segments = atomic.segments;
    load_extents(fd->get());
  } else {
    setup.buffered = true;
  }
  // Tests behind the end, where no data can be lost, whether holes can be punched. A read-only file
  // can't be tested; hosts see it as thin, and their UNMAPs are refused as writes.
  const bool punches =
      spec.read_only || fallocate(fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(*size), spec.block_size) == 0;
  if (punches) {
    setup.info.discard_granularity =
        std::max(static_cast<uint32_t>(filesystem.f_bsize), spec.block_size);
    setup.info.discard_zeroes = true;
    setup.info.thin = true;
  }
  setup.sentinel = TruncationSentinel::create(fd->get(), *size);
  if (Result<BlockQueue> queue = read_block_queue(status.st_dev)) {
    setup.info.rotational = queue->rotational;
  }
  setup.fd = std::move(*fd);
  std::unique_ptr<File> file(new File(spec, std::move(setup)));
  if (!punches) file->refuse(RangeMethod::kPunchHole);
  return Result<std::unique_ptr<Backend>>(std::move(file));
}

bool File::run_query(AioOp& op, Aio& aio) {
  op.kind = AioOp::Kind::kCall;
  aio.submit_blocking(op, threads(), nullptr);
  return false;
}

// Preallocated space without data counts as unallocated: the kernel reports it so, and it reads
// zeros.
Result<Extent> File::allocation(uint64_t offset, uint64_t limit) const {
  const uint64_t size = size_bytes();
  if (limit == 0 || offset >= size) return Error{"allocation asked beyond the end"};
  limit = std::min(limit, size - offset);
  const auto at = static_cast<off_t>(offset);
  const off_t data = lseek(fd(), at, SEEK_DATA);
  if (data < 0) {
    if (errno == ENXIO) return Extent{limit, false};
    return fail(path(), "can't tell what is allocated: " + why(errno), "");
  }
  if (data > at) return Extent{std::min(limit, static_cast<uint64_t>(data - at)), false};
  const off_t hole = lseek(fd(), at, SEEK_HOLE);
  // A concurrent write to the neighboring range may have filled the hole.
  if (hole <= at) return Extent{limit, true};
  return Extent{std::min(limit, static_cast<uint64_t>(hole - at)), true};
}

uint64_t File::free_bytes() const {
  struct statvfs filesystem;
  if (fstatvfs(fd(), &filesystem) != 0) return UINT64_MAX;
  return uint64_t{filesystem.f_bavail} * filesystem.f_frsize;
}

Result<void> File::resize(uint64_t new_size) {
  if (new_size < size_bytes()) {
    return fail(path(),
                "can't shrink from " + format_size(size_bytes()) + " to " + format_size(new_size) +
                    ", data would be lost",
                "make a smaller volume and copy");
  }
  if (new_size % block_size() != 0 || new_size > uint64_t{INT64_MAX}) {
    return fail(path(), "new size is no multiple of the block size or beyond 8EiB",
                "round it up to " + std::to_string(block_size()));
  }
  if (info().read_only) return fail(path(), "is read-only", "open it writable to grow it");
  // Growing would hide a truncation.
  if (medium().is_cut_short()) return cut_short_error();
  struct stat status;
  if (fstat(fd(), &status) != 0) return fail(path(), why(errno), "check the filesystem");
  // Never truncates: another process may already have grown the file.
  if (static_cast<uint64_t>(status.st_size) < new_size &&
      (ftruncate(fd(), static_cast<off_t>(new_size)) != 0 || fsync(fd()) != 0)) {
    return fail(path(), "can't grow to " + format_size(new_size) + ": " + why(errno),
                errno == EFBIG ? "the filesystem's limit is lower: choose a smaller size" : "");
  }
  if (!medium().grow(new_size)) {
    return fail(path(), "can't map its last page: " + why(errno), "");
  }
  return {};
}

Result<void> File::check() {
  struct stat status;
  if (fstat(fd(), &status) != 0) return fail(path(), why(errno), "check the filesystem");
  if (status.st_nlink == 0) {
    return fail(path(), "was deleted while in use",
                "its data goes when the gateway stops: copy it from /proc/" +
                    std::to_string(getpid()) + "/fd/" + std::to_string(fd()) + " first");
  }
  return medium().is_cut_short() ? cut_short_error() : Result<void>();
}

std::string File::location_problem() const {
  struct stat ours{}, named{};
  if (fstat(fd(), &ours) != 0 || ours.st_nlink == 0) return {};  // check() reports it
  if (stat(path().c_str(), &named) != 0) {
    return fail(path(), "the file in use has another name now (" + why(errno) + ')',
                "rename it back, or restore the mount")
        .message;
  }
  if (ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) return {};
  return fail(path(), "the file in use was replaced by another file of this name",
              "rename the former file back before the gateway restarts or the volume moves")
      .message;
}

Error File::cut_short_error() const {
  return fail(path(), "was cut short of its " + format_size(size_bytes()) + " while in use",
              "restore it, then restart the gateway");
}

}  // namespace sluice::backend
