#include "control/local/device_survey.h"

#include <blkid/blkid.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <memory>

#include "backend/failure.h"
#include "backend/lock.h"
#include "backend/spec.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

using backend::fail;
using backend::why;

constexpr uint64_t kLeastUsable = uint64_t{1} << 20;  // bytes; the size of the smallest volume

struct ProbeEnd {
  void operator()(blkid_probe probe) const { blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<blkid_struct_probe, ProbeEnd>;

std::string value_of(blkid_probe probe, const char* name) {
  const char* value = nullptr;
  return blkid_probe_lookup_value(probe, name, &value, nullptr) == 0 ? value : "";
}

// Another exclusive user: a mount, LVM, md, or a gateway outside this pool.
std::string user_of(const std::string& path, dev_t device) {
  const FileDescriptor probe(::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  if (probe.valid() || errno != EBUSY) return {};
  return path + ": is in use: " + backend::describe_device_user(device, path);
}

void check_unlabelled(int device, dev_t number, SurveyedDevice* found) {
  found->problem = user_of(found->path, number);
  if (found->problem.empty()) found->problem = foreign_data(device, found->path);
  if (found->problem.empty() && found->usable < kLeastUsable) {
    found->problem =
        fail(found->path, "is too small for a volume", "take it out of the pool").message;
  }
}

SurveyedDevice survey_device(const std::string& path, std::map<dev_t, std::string>* seen) {
  SurveyedDevice found{.path = path};
  const auto unread = [&found](const std::string& problem) {
    found.problem = problem;
    found.is_unread = true;
    return found;
  };
  const Result<FileDescriptor> device = open_device(path, O_RDONLY);
  if (!device) return unread(device.error());
  struct stat status{};
  if (::fstat(device.value().get(), &status) != 0) {
    return unread(fail(path, "can't be read: " + why(errno), "check the device").message);
  }
  const auto [at, is_new] = seen->emplace(status.st_rdev, path);
  if (!is_new) {
    found.problem =
        fail(path, "is the same device as " + at->second, "name it once in the pool").message;
    return found;
  }
  const Result<uint64_t> usable = usable_bytes(device.value().get(), path);
  const auto label = usable ? read_label(device.value().get(), path)
                            : Result<std::optional<DeviceLabel>>(Error{usable.error()});
  if (!label) return unread(label.error());
  found.usable = usable.value();
  found.label = label.value();
  if (!found.label) check_unlabelled(device.value().get(), status.st_rdev, &found);
  return found;
}

}  // namespace

Result<FileDescriptor> open_device(const std::string& path, int flags) {
  FileDescriptor device(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK));
  if (!device.valid()) {
    const int error = errno;
    struct stat status{};
    if (error == EBUSY && ::stat(path.c_str(), &status) == 0) {
      return fail(path, "is in use: " + backend::describe_device_user(status.st_rdev, path), "");
    }
    return fail(path, "can't open: " + why(error),
                error == EACCES || error == EPERM
                    ? "give the gateway's user access to it"
                    : "connect the device, or take it out of the pool");
  }
  struct stat status{};
  if (::fstat(device.get(), &status) != 0 || !S_ISBLK(status.st_mode)) {
    return fail(path, "is no block device", "name block devices in the pool");
  }
  return device;
}

Result<uint64_t> usable_bytes(int device, const std::string& path) {
  uint64_t bytes = 0;
  if (::ioctl(device, BLKGETSIZE64, &bytes) != 0) {
    return fail(path, "can't tell its size: " + why(errno), "check that it is connected");
  }
  // Some drivers report this for a device whose medium or connection is lost.
  if (bytes == 0) return fail(path, "has no medium: its size is 0", "check that it is connected");
  if (bytes <= kDeviceReserved) return uint64_t{0};
  const uint64_t rest = bytes - kDeviceReserved;
  return rest - rest % 4096;
}

std::string foreign_data(int device, const std::string& path) {
  const Probe probe(blkid_new_probe());
  if (!probe || blkid_probe_set_device(probe.get(), device, 0, 0) != 0) {
    return fail(path, "can't find out what it holds", "check the device").message;
  }
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE);
  blkid_probe_enable_partitions(probe.get(), 1);
  const int found = blkid_do_safeprobe(probe.get());
  if (found == 1) return {};
  std::string what = value_of(probe.get(), "TYPE");
  const std::string table = value_of(probe.get(), "PTTYPE");
  if (what.empty() && !table.empty()) what = "a partition table (" + table + ")";
  if (found == 0) {
    return fail(path, "holds data that is not Sluice's: " + what,
                "once it is not needed, `wipefs --all` it, or take it out of the pool")
        .message;
  }
  return fail(path, found == -2 ? "holds signatures of several kinds of data" : "can't be read",
              "once its data is not needed, `wipefs --all` it, or take it out of the pool")
      .message;
}

std::vector<SurveyedDevice> survey(const std::vector<std::string>& paths) {
  std::map<dev_t, std::string> seen;
  std::vector<SurveyedDevice> all;
  all.reserve(paths.size());
  for (const std::string& path : paths) all.push_back(survey_device(path, &seen));
  return all;
}

}  // namespace sluice::control
