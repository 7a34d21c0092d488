// What stands at the start of a block device that a volume has, in front of the volume's first
// byte: whose it is, and where what is known beside the data is kept. The device tells it whatever
// it is called by now, and to every gateway that sees it.
//
//   sluice-device 1
//   location volume-5f0c7a3e-...     the volume, as jobs and orders call it
//   records 1b4e28ba2fa14b0a...      of the directory with its record (control/local/record.h)
//   crc32c 8a9136aa                  over everything above
//
// It is there twice, so that a power cut while it is written leaves one that holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::control {

// In front of the data, in bytes.
inline constexpr uint64_t kDeviceReserved = uint64_t{1} << 20;

struct DeviceLabel {
  std::string location;  // at most 255 characters
  std::string records;
  bool operator==(const DeviceLabel&) const = default;
};

std::string format_label(const DeviceLabel& label);
std::optional<DeviceLabel> parse_label(std::string_view text);  // nullopt: it is none, or damaged

// nullopt: there is none. Errors name `path`; one is a label of which no copy holds.
Result<std::optional<DeviceLabel>> read_label(int device, const std::string& path);
// Under the device's lock. It outlasts a power cut when this returns.
Result<void> write_label(int device, const DeviceLabel& label, const std::string& path);

}  // namespace sluice::control
