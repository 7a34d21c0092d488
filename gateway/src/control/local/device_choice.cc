#include "control/local/device_choice.h"

#include <unistd.h>

#include "base/limits.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

std::string file_of(const std::string& location) { return location + ".device"; }

}  // namespace

Result<std::optional<std::string>> chosen_device(int directory, const std::string& location,
                                                 const std::string& shown) {
  const std::string name = file_of(location);
  return read_small_file(directory, name, limits::kMaxPathBytes, shown + '/' + name);
}

Result<void> choose_device(int directory, const std::string& location, const std::string& device,
                           const std::string& shown) {
  const std::string name = file_of(location);
  return replace_file(directory, name, device, shown + '/' + name);
}

void forget_device(int directory, const std::string& location) {
  ::unlinkat(directory, file_of(location).c_str(), 0);
}

}  // namespace sluice::control
