// The block devices of a pool as they are now: how large, whose, and whether a volume may have one.
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
  uint64_t usable = 0;  // bytes that a volume on it can have
  std::optional<DeviceLabel> label = {};
  // Why it is neither a volume's nor can be made to, and the mend; empty: it is, or is free.
  std::string problem = {};
  bool is_unread = false;  // the problem: its label can't be read, so it may be any volume's
  bool is_free() const { return problem.empty() && !label; }
};

// `flags` are open()'s, with which it is opened. Errors name the path, the cause and the mend.
Result<FileDescriptor> open_device(const std::string& path, int flags);
Result<uint64_t> usable_bytes(int device, const std::string& path);
// Why what the device holds must not be written over: a filesystem, a partition table, a volume of
// LVM, of whatever libblkid knows; empty: nothing that is known.
std::string foreign_data(int device, const std::string& path);

// One that goes by two names counts once.
std::vector<SurveyedDevice> survey(const std::vector<std::string>& paths);

}  // namespace sluice::control
