#include "control/local/image_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "base/record_text.h"
#include "base/safety_mutation.h"
#include "control/local/files.h"
#include "control/local/two_copies.h"

namespace sluice::control {
namespace {

constexpr const char* kHeading = "sluice-image 1";
constexpr const char* kSuffix = ".image";

std::string name_of(const std::string& location) { return location + kSuffix; }

std::string shown_name(const ImageRecords& where, const std::string& location) {
  return where.path + "/.sluice/" + name_of(location);
}

bool is_snapshot(const std::string& location) { return location.starts_with("snapshot-"); }

// Images in subdirectories have no record, because their names do not fit into a file name.
bool is_recorded(const std::string& location) { return location.find('/') == std::string::npos; }

Result<ImageIdentity> identity_of(const ImageRecords& where, const std::string& location,
                                  int file) {
  const std::string path = where.path + '/' + location;
  struct statx status{};
  if (::statx(file, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME | STATX_SIZE, &status) != 0) {
    return Error{"can't examine " + path + ": " + reason_of(errno)};
  }
  ImageIdentity identity{.inode = status.stx_ino, .adoptions = where.adoptions};
  if (is_snapshot(location)) identity.size = status.stx_size;
  if ((status.stx_mask & STATX_BTIME) != 0) {
    identity.born_seconds = status.stx_btime.tv_sec;
    identity.born_nanos = status.stx_btime.tv_nsec;
  }
  // The command's size is that of a `long`. ext4 and XFS write an int, FUSE writes the whole long.
  long generation = 0;
  if (::ioctl(file, FS_IOC_GETVERSION, &generation) == 0) {
    identity.generation = static_cast<uint32_t>(generation);
  }
  return identity;
}

// An unknown generation on either side is ignored.
bool is_same_file(const ImageIdentity& one, const ImageIdentity& other) {
  return one.inode == other.inode &&
         (one.generation == 0 || other.generation == 0 || one.generation == other.generation) &&
         one.born_seconds == other.born_seconds && one.born_nanos == other.born_nanos &&
         (one.size == 0 || other.size == 0 || one.size == other.size);
}

std::string described(const ImageIdentity& identity) {
  return fmt::format("inode {}, created at {}.{:09}{}", identity.inode, identity.born_seconds,
                     identity.born_nanos,
                     identity.size == 0 ? "" : fmt::format(", {} bytes", identity.size));
}

// A full pool has no room for the record of an image that a former release created. That release
// served the image without one, so does this one, and the next opening records it.
Result<void> record_if_room(const ImageRecords& where, const std::string& location, int file) {
  errno = 0;
  Result<void> recorded = record_image(where, location, file);
  if (recorded || !is_out_of_space(errno)) return recorded;
  log::warning("an image is used without a record of its identity",
               {{"record", shown_name(where, location)}, {"error", recorded.error()}});
  return {};
}

}  // namespace

std::string format_identity(const ImageIdentity& identity) {
  return fmt::format(
      "{}\ninode {}\ngeneration {}\nborn {}.{:09}\n{}adoptions {}\n", kHeading, identity.inode,
      identity.generation, identity.born_seconds, identity.born_nanos,
      identity.size == 0 ? "" : fmt::format("size {}\n", identity.size), identity.adoptions);
}

std::optional<ImageIdentity> parse_identity(std::string_view text) {
  RecordReader lines(text, kHeading);
  ImageIdentity identity;
  identity.inode = lines.number("inode");
  identity.generation = static_cast<uint32_t>(lines.number("generation", UINT32_MAX));
  const std::string_view born = lines.text("born");
  const size_t point = born.find('.');
  if (point == std::string_view::npos) return std::nullopt;
  WordReader seconds(born.substr(0, point));
  WordReader nanos(born.substr(point + 1));
  identity.born_seconds = static_cast<int64_t>(seconds.number(INT64_MAX));
  identity.born_nanos = static_cast<uint32_t>(nanos.number(999'999'999));
  if (lines.has("size")) identity.size = lines.number("size");
  identity.adoptions = static_cast<uint32_t>(lines.number("adoptions", UINT32_MAX));
  if (!lines.complete() || !seconds.complete() || !nanos.complete()) return std::nullopt;
  return identity;
}

Result<void> verify_image(const ImageRecords& where, const std::string& location, int file) {
  if (!is_recorded(location)) return {};
  const std::string shown = shown_name(where, location);
  const std::string path = where.path + '/' + location;
  const auto texts = read_copies(where.records, name_of(location), shown);
  if (!texts) return Error{texts.error()};
  if (!texts.value()) return record_if_room(where, location, file);
  std::optional<ImageIdentity> recorded;
  for (const std::string& text : *texts.value()) {
    if (!recorded) recorded = parse_identity(text);
  }
  const std::string confirm = "once you know that " + path + " is the right file, remove " + shown +
                              ", or confirm the whole pool with `sluicectl pool adopt`";
  if (recorded && recorded->adoptions < where.adoptions) {
    return record_image(where, location, file);
  }
  if (!recorded) return Error{shown + " is damaged in both copies; " + confirm};
  const Result<ImageIdentity> present = identity_of(where, location, file);
  if (!present) return Error{present.error()};
  if (is_same_file(*recorded, present.value()) || mutation_disables(Guard::kImage)) {
    if (texts.value()->size() == kCopies) return {};
    // The image is identified, even if its record can't be written again.
    const Result<void> repaired = record_image(where, location, file);
    log::warning("a copy of an image's record is damaged",
                 {{"record", shown}, {"written_again", repaired.ok() ? "yes" : repaired.error()}});
    return {};
  }
  const char* expected = is_snapshot(location) ? "the snapshot" : "the volume's image";
  return Error{path + " is another file than " + expected + ": it has " +
               described(present.value()) + ", recorded are " + described(*recorded) +
               "; put the image back, or " + confirm};
}

Result<void> record_image(const ImageRecords& where, const std::string& location, int file) {
  if (!is_recorded(location)) return {};
  const Result<ImageIdentity> present = identity_of(where, location, file);
  if (!present) return Error{present.error()};
  return write_copies(where.records, name_of(location), seal(format_identity(present.value())),
                      shown_name(where, location));
}

Result<void> forget_image(const ImageRecords& where, const std::string& location) {
  if (!is_recorded(location)) return {};
  for (const std::string& name : {name_of(location), name_of(location) + ".new"}) {
    if (::unlinkat(where.records, name.c_str(), 0) != 0 && errno != ENOENT) {
      return Error{"can't delete " + shown_name(where, location) + ": " + reason_of(errno)};
    }
  }
  return {};
}

}  // namespace sluice::control
