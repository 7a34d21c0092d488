// Which device of a pool a volume was put on, said beside the records before the device itself says
// so (device_label.h). A job to make a volume may come again, and who finds no label of it then,
// but devices that can't be read, must not label a second one. A volume that was never put on any
// is held up by no device that is broken (DESIGN R15).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::control {

struct DeviceChoice {
  std::string path;  // that the device had
  // The device has the volume's label, and no deletion has begun: a device without that label at
  // this path is another device.
  bool labelled = false;
};

// `directory` has the records, `shown` is how errors call it. nullopt: the volume was never put on
// a device.
Result<std::optional<DeviceChoice>> chosen_device(int directory, const std::string& location,
                                                  const std::string& shown);
// It outlasts a power cut when this returns.
Result<void> choose_device(int directory, const std::string& location, const DeviceChoice& choice,
                           const std::string& shown);
// Notes that the device has the volume's label, where that is not noted yet: the volume is older
// than these notes, or its device has another path by now.
Result<void> note_labelled(int directory, const std::string& location, const std::string& device,
                           const std::string& shown);
// Its volume is gone for good.
void forget_device(int directory, const std::string& location);

}  // namespace sluice::control
