#include "control/local/device_wipe.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "backend/failure.h"
#include "base/clock.h"

namespace sluice::control {
namespace {

using backend::fail;
using backend::why;

constexpr uint64_t kStep = uint64_t{64} << 20;  // bytes zeroed by one call
constexpr Nanos kSlice = 500 * kMillisecond;

}  // namespace

Result<std::unique_ptr<DeviceWipe>> DeviceWipe::begin(const std::string& path,
                                                      const std::string& location) {
  Result<FileDescriptor> device = open_device(path, O_RDWR | O_EXCL);
  if (!device) return Error{device.error()};
  // Since the survey, another gateway may have finished this job and reused the device, or the
  // kernel may have reused its name.
  const Result<std::optional<DeviceLabel>> label = read_label(device->get(), path);
  if (!label) return Error{label.error()};
  if (!label.value() || label.value()->location != location) {
    return Error{path + " is not " + location + " any more; the job comes again"};
  }
  uint64_t size = 0;
  if (::ioctl(device->get(), BLKGETSIZE64, &size) != 0 || size < kDeviceReserved) {
    return fail(path, "can't tell its size", "check that it is connected");
  }
  return std::unique_ptr<DeviceWipe>(new DeviceWipe(std::move(*device), path, size));
}

// A discard guarantees nothing about later reads. Writing zeros with deallocation does, and is as
// fast if the device supports it.
Result<void> DeviceWipe::zero(uint64_t from, uint64_t length) {
  const auto at = static_cast<off_t>(from);
  if (punches_ && ::fallocate(device_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
                              static_cast<off_t>(length)) == 0) {
    return {};
  }
  punches_ = false;
  std::array<uint64_t, 2> range = {from, length};
  if (::ioctl(device_.get(), BLKZEROOUT, range.data()) == 0) return {};
  return fail(path_, "can't be overwritten with zeros: " + why(errno), "check the device");
}

Result<bool> DeviceWipe::go_on() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kSlice);
  const uint64_t data = size_ - kDeviceReserved;
  while (done_ < data) {
    const uint64_t part = std::min<uint64_t>(kStep, data - done_);
    const Result<void> zeroed = zero(kDeviceReserved + done_, part);
    if (!zeroed) return Error{zeroed.error()};
    done_ += part;
    if (std::chrono::steady_clock::now() >= end && done_ < data) return false;
  }
  if (::fsync(device_.get()) != 0)
    return fail(path_, "can't sync: " + why(errno), "check the device");
  const Result<void> zeroed = zero(0, kDeviceReserved);
  if (!zeroed) return Error{zeroed.error()};
  if (::fsync(device_.get()) != 0)
    return fail(path_, "can't sync: " + why(errno), "check the device");
  return true;
}

uint32_t DeviceWipe::permille() const {
  const uint64_t data = std::max<uint64_t>(size_ - kDeviceReserved, 1);
  return static_cast<uint32_t>(done_ / (data / 1000 + 1));
}

}  // namespace sluice::control
