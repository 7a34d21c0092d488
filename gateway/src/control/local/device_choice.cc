#include "control/local/device_choice.h"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/limits.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr std::string_view kLabelled = "\nlabelled";  // follows the path

std::string file_of(const std::string& location) { return location + ".device"; }

}  // namespace

Result<std::optional<DeviceChoice>> chosen_device(int directory, const std::string& location,
                                                  const std::string& shown) {
  const std::string name = file_of(location);
  Result<std::optional<std::string>> text = read_small_file(
      directory, name, limits::kMaxPathBytes + kLabelled.size(), shown + '/' + name);
  if (!text) return Error{text.error()};
  if (!text.value()) return std::optional<DeviceChoice>();
  DeviceChoice choice{.path = std::move(*text.value())};
  choice.labelled = choice.path.ends_with(kLabelled);
  if (choice.labelled) choice.path.resize(choice.path.size() - kLabelled.size());
  return std::optional(std::move(choice));
}

Result<void> choose_device(int directory, const std::string& location, const DeviceChoice& choice,
                           const std::string& shown) {
  const std::string name = file_of(location);
  const std::string text = choice.path + std::string(choice.labelled ? kLabelled : "");
  return replace_file(directory, name, text, shown + '/' + name);
}

Result<void> note_labelled(int directory, const std::string& location, const std::string& device,
                           const std::string& shown) {
  const auto chosen = chosen_device(directory, location, shown);
  if (!chosen) return Error{chosen.error()};
  if (chosen.value() && chosen.value()->labelled && chosen.value()->path == device) return {};
  return choose_device(directory, location, {.path = device, .labelled = true}, shown);
}

void forget_device(int directory, const std::string& location) {
  ::unlinkat(directory, file_of(location).c_str(), 0);
}

}  // namespace sluice::control
