// Frees a volume's device: overwrites all its content with zeros, the label last. If a wipe is
// interrupted, the label is still there and the wipe starts again.
#pragma once

#include <memory>
#include <string>

#include "control/local/device_survey.h"

namespace sluice::control {

class DeviceWipe {
 public:
  // Takes the device's lock. Error: another process holds the lock, or the device does not hold the
  // volume that was at `location`.
  static Result<std::unique_ptr<DeviceWipe>> begin(const std::string& path,
                                                   const std::string& location);

  // Continues for about half a second. False: not finished.
  Result<bool> go_on();
  uint32_t permille() const;  // of the work done

 private:
  DeviceWipe(FileDescriptor device, std::string path, uint64_t size)
      : device_(std::move(device)), path_(std::move(path)), size_(size) {}
  Result<void> zero(uint64_t from, uint64_t length);

  const FileDescriptor device_;
  const std::string path_;
  const uint64_t size_;  // bytes
  uint64_t done_ = 0;    // bytes wiped behind the label
  bool punches_ = true;  // the device supports zeroing with deallocation
};

}  // namespace sluice::control
