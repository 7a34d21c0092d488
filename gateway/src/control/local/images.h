// Images in a pool's directory: regular files with the names of volume images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::control {

// Whether `name` has the form that the control plane gives images: `volume-` and the volume's uid.
bool is_image_name(std::string_view name);
// Sorted by name. `path` is the directory in errors.
Result<std::vector<std::string>> images_in(int directory, const std::string& path);

}  // namespace sluice::control
