// Records on which device of a pool a volume is created. The record is written before the label on
// the device (device_label.h), because a job to create a volume may be repeated. If the repeated
// job finds no label but unreadable devices, it must not label a second device. A volume that was
// never assigned to a device is not delayed by broken devices (DESIGN R15).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::control {

struct DeviceChoice {
  std::string path;  // path of the device at that time
  // The device got the volume's label, and no deletion has begun. A device without that label at
  // this path is another device.
  bool labelled = false;
};

// `directory` contains the records; `shown` is its name in errors. nullopt: the volume was never
// assigned to a device.
Result<std::optional<DeviceChoice>> chosen_device(int directory, const std::string& location,
                                                  const std::string& shown);
// Durable across a power failure when this returns.
Result<void> choose_device(int directory, const std::string& location, const DeviceChoice& choice,
                           const std::string& shown);
// Records that the device has the volume's label, if the record does not say so yet: the volume is
// older than these records, or its device now has another path.
Result<void> note_labelled(int directory, const std::string& location, const std::string& device,
                           const std::string& shown);
// Call it when the volume is permanently deleted.
void forget_device(int directory, const std::string& location);

}  // namespace sluice::control
