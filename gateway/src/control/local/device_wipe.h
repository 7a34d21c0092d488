// Makes a device that a volume had free again: all it holds reads as zeros, its label last, so that
// a wipe that was cut short is found and begun again.
#pragma once

#include <memory>
#include <string>

#include "control/local/device_survey.h"

namespace sluice::control {

class DeviceWipe {
 public:
  // Takes the device's lock. Error: somebody has it, or it is not (any more) the volume's that was
  // at `location`.
  static Result<std::unique_ptr<DeviceWipe>> begin(const std::string& path,
                                                   const std::string& location);

  // Goes on for about half a second. false: there is more to do.
  Result<bool> go_on();
  uint32_t permille() const;  // done

 private:
  DeviceWipe(FileDescriptor device, std::string path, uint64_t size)
      : device_(std::move(device)), path_(std::move(path)), size_(size) {}
  Result<void> zero(uint64_t from, uint64_t length);

  const FileDescriptor device_;
  const std::string path_;
  const uint64_t size_;  // bytes
  uint64_t done_ = 0;    // bytes behind the label
  bool punches_ = true;  // the device takes deallocating writes of zeros
};

}  // namespace sluice::control
