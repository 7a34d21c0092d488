// Images in a pool's directory: the regular files that are named as volumes' images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::control {

// Whether a file's name is that of a volume's image, as the control plane names them: `volume-` and
// the volume's uid.
bool is_image_name(std::string_view name);
// In order of their names. `path` is the directory in errors.
Result<std::vector<std::string>> images_in(int directory, const std::string& path);

}  // namespace sluice::control
