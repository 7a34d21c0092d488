#include "control/local/device_storage.h"

#include <fcntl.h>

#include <cerrno>

#include "backend/block.h"
#include "base/log.h"
#include "control/local/device_choice.h"
#include "control/local/device_survey.h"

namespace sluice::control {
namespace {

// Searches by label. Error: no device, or more than one.
Result<std::string> find_device(const std::vector<std::string>& devices,
                                const std::string& location) {
  std::string found;
  std::string unread;
  for (const SurveyedDevice& device : survey(devices)) {
    if (device.label && device.label->location == location && device.problem.empty()) {
      if (!found.empty()) {
        found += " and " + device.path + " both say that they are " + location;
        return Error{found + "; take the one that is a copy out of the pool"};
      }
      found = device.path;
    } else if (!device.label && !device.problem.empty()) {
      unread += "; " + device.problem;
    }
  }
  if (!found.empty()) return found;
  return Error{"no device of the pool is " + location + unread +
               "; connect the device that it is on, or put it into the pool again"};
}

Result<DeviceLabel> label_of(const std::string& path, const std::string& location) {
  const Result<FileDescriptor> device = open_device(path, O_RDONLY);
  if (!device) return Error{device.error()};
  const Result<std::optional<DeviceLabel>> label = read_label(device.value().get(), path);
  if (!label) return Error{label.error()};
  if (!label.value() || label.value()->location != location) {
    return Error{path + " is not " + location + " any more"};
  }
  return *label.value();
}

bool is_held(const std::string& path) {
  const FileDescriptor probe(::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  return !probe.valid() && errno == EBUSY;
}

VolumeStorage::Opened open_exclusively(const backend::Spec& spec) {
  std::string problem;
  // Twice: the lock may have been released between the attempt and the query.
  for (int tries = 0; tries < 2; ++tries) {
    Result<std::unique_ptr<backend::Backend>> opened = backend::Block::open(spec, kDeviceReserved);
    if (opened) return {.backend = std::move(opened).value()};
    problem = opened.error();
    if (is_held(spec.path)) return {.held = true, .problem = problem};
  }
  return {.problem = problem};
}

}  // namespace

DeviceStorage::DeviceStorage(std::shared_ptr<const PoolDirectory> home, Where where,
                             std::string volume, std::string location)
    : NodeStorage(std::move(home), std::move(volume)),
      where_(std::move(where)),
      location_(std::move(location)) {}

VolumeStorage::Opened DeviceStorage::open(const wire::DesiredVolume& volume) {
  if (device_.empty() || !label_of(device_, location_)) {
    Result<std::string> found = find_device(where_.devices, location_);
    if (!found) return {.problem = found.error()};
    device_ = std::move(found).value();
  }
  backend::Spec spec;
  spec.kind = "block";
  spec.path = device_;
  spec.block_size = static_cast<uint32_t>(volume.block_size());
  spec.size = static_cast<uint64_t>(volume.size_bytes());
  spec.write_cache = volume.write_cache();
  Opened opened = open_exclusively(spec);
  if (!opened.backend) return opened;
  // Under the lock no other process can relabel the device.
  const Result<DeviceLabel> label = label_of(device_, location_);
  if (!label) return {.problem = label.error()};
  const Result<void> noted = note_labelled(home().records(), location_, device_, home().path());
  if (!noted) {
    log::warning("the device of a volume is not noted",
                 {{"volume", location_}, {"error", noted.error()}});
  }
  records_are_here_ = label.value().records == where_.records;
  const Result<FileDescriptor> device = open_device(device_, O_RDONLY);
  const Result<uint64_t> usable =
      device ? usable_bytes(device.value().get(), device_) : uint64_t{0};
  allocated_ = usable ? static_cast<int64_t>(usable.value()) : 0;
  return opened;
}

Result<VolumeStorage::Claim> DeviceStorage::claim(const Record& record, Outlasts outlasts) {
  Result<Claim> claimed = NodeStorage::claim(record, outlasts);
  if (!claimed || records_are_here_ || outlasts != Outlasts::kPowerCut) return claimed;
  const Result<FileDescriptor> device = open_device(device_, O_RDWR);
  if (!device) return Error{device.error()};
  const Result<void> written =
      write_label(device.value().get(), {location_, where_.records}, device_);
  if (!written) return Error{written.error()};
  records_are_here_ = true;
  return claimed;
}

}  // namespace sluice::control
