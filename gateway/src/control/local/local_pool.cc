#include "control/local/local_pool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "backend/size_text.h"
#include "base/limits.h"
#include "control/local/directory_marker.h"
#include "control/local/handover_socket.h"
#include "control/local/image_identity.h"
#include "control/local/jobs.h"
#include "control/local/node_storage.h"

namespace sluice::control {
namespace {

constexpr const char* kRecords = ".sluice";
constexpr std::string_view kSocketEnd = ".sock";

class LocalStorage final : public NodeStorage {
 public:
  LocalStorage(std::shared_ptr<LocalPool> pool, std::string volume, std::string location)
      : NodeStorage(std::move(pool), std::move(volume)), location_(std::move(location)) {}

  Opened open(const wire::DesiredVolume& volume) override {
    std::string problem = home().replaced();
    if (!problem.empty()) return {.problem = problem};
    // Twice: the lock may have been released between the attempt and the query.
    for (int tries = 0; tries < 2; ++tries) {
      const Result<backend::Spec> spec = spec_of(volume);
      if (!spec) return {nullptr, false, spec.error()};
      Result<std::unique_ptr<backend::Backend>> opened = backend::open(spec.value());
      if (opened) return verified(std::move(opened).value());
      problem = opened.error();
      if (is_held()) return {nullptr, true, problem};
    }
    return {nullptr, false, problem};
  }

  int64_t allocated_bytes() const override {
    struct stat status{};
    if (::fstatat(home().directory(), location_.c_str(), &status, 0) != 0) return 0;
    return int64_t{status.st_blocks} * 512;
  }

 private:
  Result<backend::Spec> spec_of(const wire::DesiredVolume& volume) const {
    backend::Spec spec;
    spec.block_size = static_cast<uint32_t>(volume.block_size());
    spec.write_cache = volume.write_cache();
    spec.create = false;
    spec.size = static_cast<uint64_t>(volume.size_bytes());
    const std::string path = home().path() + '/' + location_;
    const Result<FileDescriptor> file =
        open_beneath(home().directory(), location_, O_PATH, 0, path);
    if (!file) return Error{file.error()};
    struct stat status{};
    if (::fstat(file.value().get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      return Error{path + " is no regular file"};
    }
    spec.kind = "file";
    spec.path = path;
    // The image grows before the capacity that hosts see, so a smaller image has lost data.
    if (static_cast<uint64_t>(status.st_size) < spec.size) {
      return Error{path + " is " + backend::format_size(static_cast<uint64_t>(status.st_size)) +
                   ", recorded are " + backend::format_size(spec.size) +
                   ": its end is missing; restore the image from a backup"};
    }
    // It has already grown, but the order is older: volumes never shrink.
    if (static_cast<uint64_t>(status.st_size) > spec.size) spec.size = 0;
    return spec;
  }

  // Under the lock no other gateway replaces the file intentionally.
  Opened verified(std::unique_ptr<backend::Backend> backend) const {
    const std::string path = home().path() + '/' + location_;
    const Result<FileDescriptor> file =
        open_beneath(home().directory(), location_, O_RDONLY, 0, path);
    if (!file) return {.problem = file.error()};
    const Result<void> same = verify_image(home().image_records(), location_, file.value().get());
    if (!same) return {.problem = same.error()};
    return {.backend = std::move(backend)};
  }

  bool is_held() const {
    const Result<FileDescriptor> probe =
        open_beneath(home().directory(), location_, O_RDONLY, 0, "");
    return probe && ::flock(probe.value().get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }

  const std::string location_;
};

Result<FileDescriptor> open_records(int directory, const std::string& path) {
  const std::string shown = path + '/' + kRecords;
  if (::mkdirat(directory, kRecords, 0700) != 0 && errno != EEXIST) {
    return Error{"can't make the directory " + shown + ": " + reason_of(errno)};
  }
  Result<FileDescriptor> records =
      open_beneath(directory, kRecords, O_RDONLY | O_DIRECTORY, 0, shown);
  if (records) remove_stale_sockets(records.value().get());
  return records;
}

}  // namespace

LocalPool::LocalPool(std::string path, FileDescriptor directory, FileDescriptor records,
                     Holder self, ExpectedPool expected, Identified identified)
    : path_(std::move(path)),
      directory_(std::move(directory)),
      records_(std::move(records)),
      self_(std::move(self)),
      expected_(std::move(expected)),
      identified_(std::move(identified)) {}

Result<std::shared_ptr<LocalPool>> LocalPool::open(const std::string& directory,
                                                   const std::string& incarnation,
                                                   HandoverServer::Asked asked,
                                                   ExpectedPool expected) {
  Result<FileDescriptor> top = open_directory(directory);
  if (!top) return Error{top.error()};
  Result<Identified> identified = identify_pool(top.value().get(), directory, expected);
  if (!identified) return Error{identified.error()};
  const std::string socket = incarnation + std::string(kSocketEnd);
  const bool foreign = identified.value().foreign;
  Result<FileDescriptor> records = foreign ? Result<FileDescriptor>(FileDescriptor())
                                           : open_records(top.value().get(), directory);
  if (!records) return Error{records.error()};
  std::shared_ptr<LocalPool> pool(new LocalPool(
      directory, std::move(top).value(), std::move(records).value(),
      this_process(incarnation, socket), std::move(expected), std::move(identified).value()));
  if (foreign) return pool;
  Result<std::shared_ptr<HandoverServer>> server =
      HandoverServer::start(pool->records(), socket, std::move(asked));
  if (!server) return Error{directory + ": " + server.error()};
  pool->server_ = std::move(server).value();
  return pool;
}

ImageRecords LocalPool::image_records() const {
  const uint32_t adoptions = identified_.marker ? identified_.marker->adoptions : 0;
  return {.records = records_.get(), .path = path_, .adoptions = adoptions};
}

int64_t LocalPool::max_image_bytes() const {
  if (max_image_bytes_ == 0) max_image_bytes_ = probe_max_image_bytes(records());
  return max_image_bytes_;
}

std::string LocalPool::replaced() const {
  struct stat ours{}, named{};
  if (::fstat(directory_.get(), &ours) != 0 || ::stat(path_.c_str(), &named) != 0) {
    return path_ + ": " + reason_of(errno);
  }
  if (ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) return {};
  return path_ +
         " is another directory than before: a file system was mounted, unmounted or "
         "replaced there";
}

// A pool in doubt is verified at each call, because its remedy happens outside this process.
bool LocalPool::is_current(const wire::DesiredPool& desired) {
  const std::optional<wire::PoolIdentity>& identity = expected_.identity;
  if (desired.has_identity() != identity.has_value()) return false;
  if (!identified_.doubt.empty() || !replaced().empty()) return false;
  if (!identity) return true;
  if (identity->SerializeAsString() != desired.identity().SerializeAsString()) return false;
  const Result<std::optional<PoolMarker>> marker = read_marker(directory_.get(), path_);
  return marker && marker.value() == identified_.marker;
}

std::shared_ptr<VolumeStorage> LocalPool::storage_of(const std::string& volume,
                                                     const std::string& location) {
  return std::make_shared<LocalStorage>(shared_from_this(), volume, location);
}

Result<std::shared_ptr<VolumeStorage>> LocalPool::storage_of(const wire::DesiredVolume& volume,
                                                             std::function<void()> /*wake*/) {
  if (identified_.foreign) return Error{identified_.doubt};
  return storage_of(volume.uid(), volume.location());
}

void LocalPool::run_job(const wire::Job& job, const JobServices& services,
                        std::function<void(JobOutcome)> done) {
  const std::string doubt = identified_.doubt.empty() ? replaced() : identified_.doubt;
  if (!doubt.empty()) {
    return done(
        {.problem = "nothing is changed in storage that is not known to be the pool's: " + doubt});
  }
  done(control::run_job(*this, job, services.between));
}

void LocalPool::observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  done(control::observe(uid, *this));
}

}  // namespace sluice::control
