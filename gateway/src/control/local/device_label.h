// The label at the start of a block device, in front of the volume's first byte. It identifies the
// volume, and the directory that has the records of the volume. It is independent of the device's
// path, and every gateway that sees the device can read it.
//
//   sluice-device 1
//   location volume-5f0c7a3e-...     the volume, as jobs and orders call it
//   records 1b4e28ba2fa14b0a...      of the directory with its record (control/local/record.h)
//   crc32c 8a9136aa                  over everything above
//
// The label is written twice, so that a power failure during a write leaves one valid copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::control {

// Bytes in front of the data.
inline constexpr uint64_t kDeviceReserved = uint64_t{1} << 20;

struct DeviceLabel {
  std::string location;  // at most 255 characters
  std::string records;
  bool operator==(const DeviceLabel&) const = default;
};

std::string format_label(const DeviceLabel& label);
std::optional<DeviceLabel> parse_label(std::string_view text);  // nullopt: not a label, or damaged

// nullopt: no label. Errors name `path`. It is an error if no copy of a label is valid.
Result<std::optional<DeviceLabel>> read_label(int device, const std::string& path);
// The caller holds the device's lock. Durable across a power failure when this returns.
Result<void> write_label(int device, const DeviceLabel& label, const std::string& path);

}  // namespace sluice::control
