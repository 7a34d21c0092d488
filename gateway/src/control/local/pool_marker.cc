#include "control/local/pool_marker.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "base/clock.h"
#include "base/log.h"
#include "control/client.h"
#include "control/local/files.h"
#include "control/local/images.h"
#include "control/local/two_copies.h"

namespace sluice::control {
namespace {

constexpr const char* kMarker = ".sluice/pool";
constexpr const char* kGuard = ".sluice/pool.guard";
constexpr const char* kHeading = "sluice-pool 1";
constexpr const char* kUnknown = "-";

// Linux 6.9 and later tell the UUID of any file system, earlier ones in a way of each file system
// (include/uapi/linux/fs.h, fs/ext4/ext4.h, fs/xfs/libxfs/xfs_fs.h).
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

std::string adopt_hint() {
  return "or, if the storage was replaced deliberately, confirm it with `sluicectl pool adopt` "
         "(in Kubernetes: raise the StoragePool's spec.adoptions by one)";
}

// The first of the images that is not there; empty: all are.
std::string missing_image(int directory, const wire::PoolIdentity& identity) {
  for (const std::string& image : identity.images()) {
    if (::faccessat(directory, image.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return image;
  }
  return {};
}

Identified refuse(std::optional<PoolMarker> marker, std::string why, bool foreign) {
  return {.marker = std::move(marker), .doubt = std::move(why), .foreign = foreign};
}

// Storage that can't be written is in doubt, not foreign: what it holds is served.
Identified mark(int directory, const std::string& path, const ExpectedPool& expected) {
  const PoolMarker marker{.pool = expected.uid,
                          .id = fresh_incarnation(),
                          .filesystem = filesystem_id(directory),
                          .adoptions = expected.identity->confirmed_adoptions()};
  const Result<void> written =
      write_copies(directory, kMarker, seal(format_marker(marker)), path + '/' + kMarker);
  if (!written) return refuse({}, "the pool can't be marked: " + written.error(), false);
  log::info("the pool's storage is marked", {{"pool", expected.uid},
                                             {"directory", path},
                                             {"marker", marker.id},
                                             {"adoptions", marker.adoptions}});
  return {.marker = marker};
}

// Without any marker in the directory.
Result<Identified> identify_unmarked(int directory, const std::string& path,
                                     const ExpectedPool& expected) {
  const wire::PoolIdentity& identity = *expected.identity;
  if (!identity.marker().empty()) {
    return refuse({},
                  path + " has no marker of the pool (" + kMarker +
                      "): the pool's storage is not there. Mount it, " + adopt_hint(),
                  true);
  }
  if (const std::string image = missing_image(directory, identity); !image.empty()) {
    return refuse({},
                  path + " has no marker of the pool, and lacks " + image +
                      ", which the pool has: this may be other storage. Mount the pool's, " +
                      adopt_hint(),
                  false);
  }
  if (identity.images().empty()) {
    const Result<std::vector<std::string>> images = images_in(directory, path);
    if (!images) return Error{images.error()};
    if (!images.value().empty()) {
      return refuse({},
                    path + " holds " + images.value().front() +
                        ", which is no volume of this pool: it may be storage of another system. "
                        "Remove the image, choose another directory, " +
                        adopt_hint(),
                    true);
    }
  }
  return Identified{.mark_is_due = true};
}

std::string difference(const PoolMarker& marker, const std::string& filesystem,
                       const ExpectedPool& expected) {
  const wire::PoolIdentity& identity = *expected.identity;
  if (marker.pool != expected.uid) return "is marked as the storage of pool " + marker.pool;
  if (!marker.filesystem.empty() && !filesystem.empty() && marker.filesystem != filesystem) {
    return "is in file system " + filesystem + ", and its marker was written in file system " +
           marker.filesystem + ": it is a copy";
  }
  const bool expected_id = identity.marker().empty() || marker.id == identity.marker();
  // A gateway of the same node has written a new one, which the control plane is about to learn.
  const bool just_adopted =
      marker.adoptions > identity.adoptions() && marker.adoptions == identity.confirmed_adoptions();
  if (!expected_id && !just_adopted) {
    return "has marker " + marker.id + ", and the pool's is " + identity.marker();
  }
  return {};
}

// A marker of another pool on storage without images, where this pool has none either.
Result<bool> is_unused(int directory, const std::string& path, const ExpectedPool& expected) {
  if (!expected.identity->marker().empty() || !expected.identity->images().empty()) return false;
  const Result<std::vector<std::string>> images = images_in(directory, path);
  if (!images) return Error{images.error()};
  return images.value().empty();
}

struct FoundMarker {
  bool exists = false;
  std::optional<PoolMarker> marker = {};  // of an undamaged copy
};

Result<FoundMarker> find_marker(int directory, const std::string& path) {
  const auto texts = read_copies(directory, kMarker, path + '/' + kMarker);
  if (!texts) return Error{texts.error()};
  if (!texts.value()) return FoundMarker();
  FoundMarker found{.exists = true};
  for (const std::string& text : *texts.value()) {
    if (!found.marker) found.marker = parse_marker(text);
  }
  return found;
}

// Changes nothing: says whether a marker has to be written.
Result<Identified> compare_marker(int directory, const std::string& path,
                                  const ExpectedPool& expected) {
  const wire::PoolIdentity& identity = *expected.identity;
  const Result<FoundMarker> found = find_marker(directory, path);
  if (!found) return Error{found.error()};
  const std::optional<PoolMarker>& marker = found.value().marker;
  std::string differs;
  if (marker) {
    differs = difference(*marker, filesystem_id(directory), expected);
    // A copy within the file system has the same marker: that it is confirmed shows by the count.
    const bool confirmed = marker->adoptions >= identity.confirmed_adoptions();
    if (differs.empty() && confirmed) return Identified{.marker = marker};
  }
  if (identity.confirmed_adoptions() > identity.adoptions()) {
    return Identified{.mark_is_due = true};
  }
  if (!found.value().exists) return identify_unmarked(directory, path, expected);
  const Result<bool> unused = is_unused(directory, path, expected);
  if (!unused) return Error{unused.error()};
  if (unused.value()) return Identified{.mark_is_due = true};
  if (!marker) differs = "has a damaged marker (" + std::string(kMarker) + ')';
  return refuse(marker, path + ' ' + differs + ". Mount the pool's storage, " + adopt_hint(), true);
}

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
  std::string text;
  for (const uint8_t byte : uuid) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string format_marker(const PoolMarker& marker) {
  std::ostringstream text;
  text << kHeading << "\npool " << marker.pool << "\nmarker " << marker.id << "\nfilesystem "
       << (marker.filesystem.empty() ? kUnknown : marker.filesystem) << "\nadoptions "
       << marker.adoptions << '\n';
  return text.str();
}

std::optional<PoolMarker> parse_marker(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string heading, names[4], extra;
  PoolMarker marker;
  std::getline(lines, heading);
  lines >> names[0] >> marker.pool >> names[1] >> marker.id >> names[2] >> marker.filesystem >>
      names[3] >> marker.adoptions;
  const bool named = names[0] == "pool" && names[1] == "marker" && names[2] == "filesystem" &&
                     names[3] == "adoptions";
  if (lines.fail() || heading != kHeading || !named || lines >> extra) return std::nullopt;
  if (marker.filesystem == kUnknown) marker.filesystem.clear();
  return marker;
}

Result<std::optional<PoolMarker>> read_marker(int directory, const std::string& path) {
  Result<FoundMarker> found = find_marker(directory, path);
  if (!found) return Error{found.error()};
  return std::move(found.value().marker);
}

Result<Identified> identify_pool(int directory, const std::string& path,
                                 const ExpectedPool& expected) {
  if (!expected.identity) {
    const Result<std::optional<PoolMarker>> marker = read_marker(directory, path);
    if (!marker) return Error{marker.error()};
    if (marker.value() && marker.value()->pool != expected.uid) {
      return refuse(marker.value(),
                    path + " is marked as the storage of pool " + marker.value()->pool, true);
    }
    return Identified{.marker = marker.value()};
  }
  Result<Identified> compared = compare_marker(directory, path, expected);
  if (!compared || !compared.value().mark_is_due) return compared;
  if (::mkdirat(directory, ".sluice", 0700) != 0 && errno != EEXIST) {
    return refuse({}, "can't make the directory " + path + "/.sluice: " + reason_of(errno), false);
  }
  const Result<FileDescriptor> guarded = guard_file(directory, kGuard, path, kSecond);
  if (!guarded) return refuse({}, guarded.error(), false);
  // Again: another gateway of the node may have written it meanwhile.
  compared = compare_marker(directory, path, expected);
  if (!compared || !compared.value().mark_is_due) return compared;
  return mark(directory, path, expected);
}

}  // namespace sluice::control
