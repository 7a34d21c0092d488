// The current state of the block devices of a pool: size, owner, and whether a volume may use them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/descriptor.h"
#include "base/result.h"
#include "control/local/device_label.h"

namespace sluice::control {

using backend::FileDescriptor;

struct SurveyedDevice {
  std::string path;
  uint64_t usable = 0;  // bytes available to a volume
  std::optional<DeviceLabel> label = {};
  // Why the device neither holds a volume nor can hold one, with the remedy; empty: it does, or it
  // is free.
  std::string problem = {};
  bool is_unread = false;  // the label can't be read, so any volume may be on the device
  bool is_free() const { return problem.empty() && !label; }
};

// Opens the device with the open() flags `flags`. Errors name the path, the cause and the remedy.
Result<FileDescriptor> open_device(const std::string& path, int flags);
Result<uint64_t> usable_bytes(int device, const std::string& path);
// What the device contains that must not be overwritten: a filesystem, a partition table, an LVM
// volume, or anything else that libblkid recognizes; empty: nothing.
std::string foreign_data(int device, const std::string& path);

// A device with two paths is listed once.
std::vector<SurveyedDevice> survey(const std::vector<std::string>& paths);

}  // namespace sluice::control
