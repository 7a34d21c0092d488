#include "control/local/directory_marker.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/hex.h"
#include "base/record_text.h"
#include "control/local/files.h"
#include "control/local/images.h"
#include "control/local/two_copies.h"
#include "control/random_id.h"

namespace sluice::control {
namespace {

constexpr const char* kMarker = ".sluice/pool";
constexpr const char* kGuard = ".sluice/pool.guard";

// Linux 6.9 and later report the UUID of any file system; earlier releases only through calls of
// the individual file system (include/uapi/linux/fs.h, fs/ext4/ext4.h, fs/xfs/libxfs/xfs_fs.h).
struct GenericUuid {
  uint8_t length;
  std::array<uint8_t, 16> uuid;
};
struct Ext4Uuid {
  uint32_t length;
  uint32_t flags;
  std::array<uint8_t, 16> uuid;
};
struct XfsGeometry {
  std::array<uint8_t, 64> sizes;
  std::array<uint8_t, 16> uuid;
  std::array<uint64_t, 4> rest;
};
static_assert(sizeof(XfsGeometry) == 112);
constexpr unsigned long kGetUuid = _IOR(0x15, 0, GenericUuid);
constexpr unsigned long kExt4GetUuid = _IOR('f', 44, uint64_t);  // the size of both numbers
constexpr unsigned long kXfsGeometry = _IOR('X', 100, XfsGeometry);

class Directory final : public MarkedStorage {
 public:
  Directory(int directory, const std::string& path) : directory_(directory), path_(path) {}

  std::string shown() const override { return path_; }
  std::string marker_name() const override { return kMarker; }
  std::string kind() const override { return "file system"; }
  std::string restore() const override { return "Mount the pool's storage"; }
  std::string storage_id() const override { return filesystem_id(directory_); }
  std::string fresh_marker_id() const override { return random_id(); }

  Result<FoundMarker> find() override {
    const auto texts = read_copies(directory_, kMarker, path_ + '/' + kMarker);
    if (!texts) return Error{texts.error()};
    if (!texts.value()) return FoundMarker();
    FoundMarker found{.exists = true, .complete = texts.value()->size() == kCopies};
    for (const std::string& text : *texts.value()) {
      if (!found.marker) found.marker = parse_marker(text);
    }
    return found;
  }

  Result<std::string> missing_image(const wire::PoolIdentity& identity) override {
    for (const std::string& image : identity.images()) {
      if (::faccessat(directory_, image.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return image;
    }
    return std::string();
  }

  Result<std::string> unknown_image() override {
    const Result<std::vector<std::string>> images = images_in(directory_, path_);
    if (!images) return Error{images.error()};
    return images.value().empty() ? std::string() : images.value().front();
  }

  Result<void> begin_marking() override {
    if (::mkdirat(directory_, ".sluice", 0700) != 0 && errno != EEXIST) {
      return Error{"can't make the directory " + path_ + "/.sluice: " + reason_of(errno)};
    }
    Result<FileDescriptor> guarded = guard_file(directory_, kGuard, path_, kSecond);
    if (!guarded) return Error{guarded.error()};
    guard_ = std::move(guarded).value();
    return {};
  }

  // The guard excludes other writers.
  Result<bool> write(const PoolMarker& marker) override {
    const Result<void> written =
        write_copies(directory_, kMarker, seal(format_marker(marker)), path_ + '/' + kMarker);
    if (!written) return Error{written.error()};
    return true;
  }

 private:
  const int directory_;
  const std::string& path_;
  FileDescriptor guard_;
};

}  // namespace

std::string filesystem_id(int directory) {
  std::array<uint8_t, 16> uuid{};
  GenericUuid generic{};
  Ext4Uuid ext4{};
  ext4.length = ext4.uuid.size();
  XfsGeometry xfs{};
  if (::ioctl(directory, kGetUuid, &generic) == 0 && generic.length == uuid.size()) {
    uuid = generic.uuid;
  } else if (::ioctl(directory, kXfsGeometry, &xfs) == 0) {
    uuid = xfs.uuid;
  } else if (::ioctl(directory, kExt4GetUuid, &ext4) == 0) {
    uuid = ext4.uuid;
  } else {
    return {};
  }
  return hex_text(uuid);
}

Result<std::optional<PoolMarker>> read_marker(int directory, const std::string& path) {
  Result<FoundMarker> found = Directory(directory, path).find();
  if (!found) return Error{found.error()};
  return std::move(found.value().marker);
}

Result<Identified> identify_pool(int directory, const std::string& path,
                                 const ExpectedPool& expected) {
  Directory storage(directory, path);
  return identify_pool(storage, expected);
}

}  // namespace sluice::control
