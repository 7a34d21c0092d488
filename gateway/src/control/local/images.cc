#include "control/local/images.h"

#include <algorithm>
#include <filesystem>

namespace sluice::control {
namespace {

constexpr std::string_view kPrefix = "volume-";
constexpr std::string_view kUnfinished = ".new";  // suffix of an incomplete copy

}  // namespace

bool is_image_name(std::string_view name) {
  return name.starts_with(kPrefix) && !name.ends_with(kUnfinished);
}

Result<std::vector<std::string>> images_in(int directory, const std::string& path) {
  std::vector<std::string> images;
  std::error_code failed;
  const std::filesystem::path seen = "/proc/self/fd/" + std::to_string(directory);
  for (std::filesystem::directory_iterator at(seen, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::string name = at->path().filename();
    if (is_image_name(name)) images.push_back(std::move(name));
  }
  if (failed) return Error{"can't list " + path + ": " + failed.message()};
  std::sort(images.begin(), images.end());
  return images;
}

}  // namespace sluice::control
