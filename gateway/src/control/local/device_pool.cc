#include "control/local/device_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "backend/size_text.h"
#include "base/limits.h"
#include "control/local/device_choice.h"
#include "control/local/device_storage.h"
#include "control/local/record_files.h"
#include "control/random_id.h"

namespace sluice::control {
namespace {

constexpr const char* kGuard = "devices.guard";
constexpr const char* kId = "id";
constexpr size_t kMaxLocation = 240;  // leaves room for a suffix in a file name

JobOutcome problem(std::string why) { return {.problem = std::move(why)}; }

// Serializes, on this node, the assignment of devices to volumes.
Result<FileDescriptor> guard(const PoolDirectory& home) {
  return guard_file(home.records(), kGuard, home.path(), 5 * kSecond);
}

// The directory's own id, which is the same for every gateway, regardless of the path.
Result<std::string> id_of(const PoolDirectory& home) {
  const Result<FileDescriptor> guarded = guard(home);
  if (!guarded) return Error{guarded.error()};
  const std::string shown = home.path() + "/.sluice/" + kId;
  const auto there = read_small_file(home.records(), kId, 64, shown);
  if (!there) return Error{there.error()};
  if (there.value() && there.value()->size() == 32) return *there.value();
  const std::string id = random_id();
  const Result<void> written = replace_file(home.records(), kId, id, shown);
  if (!written) return Error{written.error()};
  return id;
}

const SurveyedDevice* find(const std::vector<SurveyedDevice>& all, const std::string& location) {
  const auto at = std::find_if(all.begin(), all.end(), [&location](const SurveyedDevice& device) {
    return device.label && device.label->location == location;
  });
  return at == all.end() ? nullptr : &*at;
}

std::string too_small(const SurveyedDevice& device, int64_t wanted) {
  return fmt::format("{} has {} for a volume, less than {}; grow the device", device.path,
                     backend::format_size(device.usable),
                     backend::format_size(static_cast<uint64_t>(wanted)));
}

std::string none_is_free(const std::vector<SurveyedDevice>& all, int64_t wanted) {
  std::string why;
  for (const SurveyedDevice& device : all) {
    why += why.empty() ? " (" : "; ";
    if (!device.problem.empty()) {
      why += device.problem;
    } else if (device.label) {
      why += device.path + " is " + device.label->location;
    } else {
      why += device.path + " has " + backend::format_size(device.usable);
    }
  }
  return "no device of the pool is free and has " +
         backend::format_size(static_cast<uint64_t>(wanted)) + " or more" +
         (why.empty() ? why : why + ")") + "; add a device to the pool";
}

std::string records_of(const PoolDirectory& home) { return home.path() + "/.sluice"; }

// The devices that may hold the volume because they can't be read; empty: no device holds it.
std::string where_it_may_be(const std::vector<SurveyedDevice>& all, const std::string& location) {
  std::string unread;
  for (const SurveyedDevice& device : all) {
    if (device.is_unread) unread += (unread.empty() ? "" : "; ") + device.problem;
  }
  if (unread.empty()) return {};
  return location +
         " may be on a device that can't be read; connect that again, or take it out of the "
         "pool's list (" +
         unread + ")";
}

}  // namespace

DevicePool::Devices DevicePool::Devices::become(std::vector<std::string> now) const {
  Devices next{.here = std::move(now)};
  for (const auto* some : {&taken_out, &here}) {
    for (const std::string& device : *some) {
      const auto& in = next.here;
      if (std::find(in.begin(), in.end(), device) == in.end()) next.taken_out.push_back(device);
    }
  }
  return next;
}

Result<std::shared_ptr<DevicePool>> DevicePool::open(Devices devices, const std::string& directory,
                                                     const std::string& incarnation,
                                                     HandoverServer::Asked asked) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) {
    return Error{"the directory " + directory + " for records of devices can't be made: " +
                 failed.message() + "; give --device-records"};
  }
  Result<std::shared_ptr<const PoolDirectory>> home =
      PoolDirectory::open(directory, incarnation, std::move(asked));
  if (!home) return Error{home.error()};
  Result<std::string> id = id_of(**home);
  if (!id) return Error{id.error()};
  return std::shared_ptr<DevicePool>(
      new DevicePool(std::move(devices), std::move(home).value(), std::move(id).value()));
}

Result<std::shared_ptr<VolumeStorage>> DevicePool::storage_of(const wire::DesiredVolume& volume,
                                                              std::function<void()> /*wake*/) {
  return std::shared_ptr<VolumeStorage>(std::make_shared<DeviceStorage>(
      home_, DeviceStorage::Where{devices_, records_}, volume.uid(), volume.location()));
}

Result<void> DevicePool::take(const SurveyedDevice& found, const std::string& location) const {
  const Result<FileDescriptor> device = open_device(found.path, O_RDWR | O_EXCL);
  if (!device) return Error{device.error()};
  // Checked again under the device's lock.
  const Result<std::optional<DeviceLabel>> label = read_label(device.value().get(), found.path);
  if (!label) return Error{label.error()};
  if (label.value()) return Error{found.path + " is " + label.value()->location + " by now"};
  const std::string foreign = foreign_data(device.value().get(), found.path);
  if (!foreign.empty()) return Error{foreign};
  return write_label(device.value().get(), {location, records_}, found.path);
}

// Chooses the smallest sufficient device; of several, the first in the pool's list.
JobOutcome DevicePool::create(const wire::CreateImage& job) const {
  const std::string& location = job.location();
  if (location.empty() || location.size() > kMaxLocation ||
      location.find_first_of("\n/") != std::string::npos) {
    return problem("\"" + location + "\" is no name for a volume on a device");
  }
  if (job.size_bytes() <= 0) return problem(location + ": its size must be more than 0");
  const auto size = static_cast<uint64_t>(job.size_bytes());
  const Result<FileDescriptor> guarded = guard(*home_);
  if (!guarded) return problem(guarded.error());
  const std::string records = records_of(*home_);
  const std::vector<SurveyedDevice> all = survey(devices_);
  if (const SurveyedDevice* has = find(all, location)) {
    return has->usable >= size ? JobOutcome() : problem(too_small(*has, job.size_bytes()));
  }
  const auto before = chosen_device(home_->records(), location, records);
  if (!before) return problem(before.error());
  const std::string unsure = before.value() ? where_it_may_be(all, location) : std::string();
  if (!unsure.empty()) return problem(unsure + "; it was put on " + before.value()->path);
  const SurveyedDevice* best = nullptr;
  for (const SurveyedDevice& device : all) {
    if (!device.is_free() || device.usable < size) continue;
    if (best == nullptr || device.usable < best->usable) best = &device;
  }
  if (best == nullptr) return problem(none_is_free(all, job.size_bytes()));
  const Result<void> chosen =
      choose_device(home_->records(), location, {.path = best->path}, records);
  if (!chosen) return problem(chosen.error());
  const Result<void> taken = take(*best, location);
  if (!taken) return problem(taken.error());
  const Result<void> noted =
      choose_device(home_->records(), location, {.path = best->path, .labelled = true}, records);
  return noted ? JobOutcome() : problem(noted.error());
}

JobOutcome DevicePool::grow(const wire::ResizeImage& job) const {
  const std::vector<SurveyedDevice> all = survey(devices_);
  const SurveyedDevice* device = find(all, job.location());
  if (device == nullptr) return problem("no device of the pool is " + job.location());
  if (device->usable >= static_cast<uint64_t>(job.size_bytes())) return {};
  return problem(too_small(*device, job.size_bytes()));
}

// Why the device at the path of the volume's device is another device: the former one still holds
// the data. Empty: it is the same device.
std::string DevicePool::replaced_device(const std::string& location) const {
  const auto chosen = chosen_device(home_->records(), location, records_of(*home_));
  if (!chosen) return chosen.error();
  if (!chosen.value() || !chosen.value()->labelled) return {};
  const std::string& path = chosen.value()->path;
  if (std::find(devices_.begin(), devices_.end(), path) == devices_.end()) return {};
  return location + " was put on " + path +
         ", and another device is there now: its data is not deleted. Connect the device that it "
         "is on, or take " +
         path + " out of the pool's list";
}

// In slices, so that the pool's other jobs can run between them.
void DevicePool::remove(const wire::DeleteImage& job, const JobServices& services,
                        std::function<void(JobOutcome)> done) const {
  const std::vector<SurveyedDevice> all = survey(devices_);
  const SurveyedDevice* device = find(all, job.location());
  const auto wiped = [home = home_, uid = job.volume_uid(), location = job.location(), done] {
    forget_device(home->records(), location);
    if (uid.empty()) return done({});
    const Result<void> gone = remove_records(home->records(), uid, records_of(*home));
    done(problem(gone ? std::string() : gone.error()));
  };
  if (device == nullptr) {
    // Its data would stay although its records are deleted.
    std::string unsure = where_it_may_be(all, job.location());
    if (unsure.empty()) unsure = replaced_device(job.location());
    return unsure.empty() ? wiped() : done(problem(unsure));
  }
  Result<std::unique_ptr<DeviceWipe>> begun = DeviceWipe::begin(device->path, job.location());
  if (!begun) return done(problem(begun.error()));
  // From here on the label may be missing because it was wiped.
  const Result<void> noted =
      choose_device(home_->records(), job.location(), {.path = device->path}, records_of(*home_));
  if (!noted) return done(problem(noted.error()));
  struct Going {
    std::shared_ptr<DeviceWipe> wipe;
    JobServices services;
    std::function<void(JobOutcome)> done;
    std::function<void()> wiped;
    void operator()() const {
      const Result<bool> ended = wipe->go_on();
      if (!ended) return done(problem(ended.error()));
      if (ended.value()) return wiped();
      services.progress(wipe->permille());
      services.again(*this);
    }
  };
  Going{std::move(begun).value(), services, std::move(done), wiped}();
}

JobOutcome DevicePool::list() const {
  JobOutcome outcome;
  for (const SurveyedDevice& device : survey(devices_)) {
    if (device.label) outcome.images.push_back(device.label->location);
  }
  return outcome;
}

void DevicePool::run_job(const wire::Job& job, const JobServices& services,
                         std::function<void(JobOutcome)> done) {
  switch (job.action_case()) {
    case wire::Job::kCreate:
      return done(create(job.create()));
    case wire::Job::kResize:
      return done(grow(job.resize()));
    case wire::Job::kDelete:
      return remove(job.delete_(), services, std::move(done));
    case wire::Job::kListImages:
      return done(list());
    case wire::Job::kDeleteSnapshot:
      return done({});  // there never was one
    default:
      return done({.problem =
                       "volumes on whole devices have no snapshots, copies or rollbacks; use a "
                       "pool with a directory on XFS or Btrfs",
                   .unsupported = true});
  }
}

void DevicePool::observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  wire::PoolObserved observed;
  observed.set_uid(uid);
  uint64_t capacity = 0;
  uint64_t used = 0;
  uint64_t largest = 0;
  bool sizes_known = true;
  // Surveyed together, so that a device that only has another name now does not count as removed.
  std::vector<std::string> both = devices_;
  both.insert(both.end(), taken_out_.begin(), taken_out_.end());
  const std::vector<SurveyedDevice> all = survey(both);
  for (size_t i = 0; i < all.size(); ++i) {
    const SurveyedDevice& device = all[i];
    if (i >= devices_.size()) {
      if (!device.problem.empty() || !device.label) continue;
      wire::TakenOutDevice& taken = *observed.add_taken_out_devices();
      taken.set_path(device.path);
      taken.set_location(device.label->location);
      continue;
    }
    if (!device.problem.empty()) {
      observed.add_unusable_devices(device.problem);
      sizes_known = false;  // it may be the largest
      continue;
    }
    capacity += device.usable;
    if (device.label) used += device.usable;
    largest = std::max(largest, device.usable);
  }
  if (sizes_known) observed.set_max_image_bytes(static_cast<int64_t>(largest));
  observed.set_lists_images(true);
  observed.set_capacity_bytes(static_cast<int64_t>(capacity));
  observed.set_used_bytes(static_cast<int64_t>(used));
  if (capacity == 0) observed.set_problem("none of the pool's devices can be used");
  done(observed);
}

}  // namespace sluice::control
