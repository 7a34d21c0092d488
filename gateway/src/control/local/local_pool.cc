#include "control/local/local_pool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "backend/spec.h"
#include "base/limits.h"
#include "control/local/handover_socket.h"
#include "control/local/jobs.h"
#include "control/local/node_place.h"

namespace sluice::control {
namespace {

constexpr const char* kRecords = ".sluice";
constexpr std::string_view kSocketEnd = ".sock";

class LocalPlace final : public NodePlace {
 public:
  LocalPlace(std::shared_ptr<LocalPool> pool, std::string volume, std::string location)
      : NodePlace(std::move(pool), std::move(volume)), location_(std::move(location)) {}

  Opened open(const wire::DesiredVolume& volume) override {
    std::string problem;
    // Twice: it may have become free between the try and the look.
    for (int tries = 0; tries < 2; ++tries) {
      const Result<backend::Spec> spec = spec_of(volume);
      if (!spec) return {nullptr, false, spec.error()};
      Result<std::unique_ptr<backend::Backend>> opened = backend::open(spec.value());
      if (opened) return {std::move(opened).value(), false, {}};
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
    // It has grown already, and word of that hasn't come here: volumes never shrink.
    if (static_cast<uint64_t>(status.st_size) > spec.size) spec.size = 0;
    return spec;
  }

  bool is_held() const {
    const Result<FileDescriptor> probe =
        open_beneath(home().directory(), location_, O_RDONLY, 0, "");
    return probe && ::flock(probe.value().get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }

  const std::string location_;
};

}  // namespace

LocalPool::LocalPool(std::string path, FileDescriptor directory, FileDescriptor records,
                     Holder self)
    : path_(std::move(path)),
      directory_(std::move(directory)),
      records_(std::move(records)),
      self_(std::move(self)) {}

Result<std::shared_ptr<LocalPool>> LocalPool::open(const std::string& directory,
                                                   const std::string& incarnation,
                                                   HandoverServer::Asked asked) {
  Result<FileDescriptor> top = open_directory(directory);
  if (!top) return Error{top.error()};
  const std::string shown = directory + '/' + kRecords;
  if (::mkdirat(top.value().get(), kRecords, 0700) != 0 && errno != EEXIST) {
    return Error{"can't make the directory " + shown + ": " + reason_of(errno)};
  }
  Result<FileDescriptor> records =
      open_beneath(top.value().get(), kRecords, O_RDONLY | O_DIRECTORY, 0, shown);
  if (!records) return Error{records.error()};
  remove_stale_sockets(records.value().get());
  const std::string socket = incarnation + std::string(kSocketEnd);
  std::shared_ptr<LocalPool> pool(new LocalPool(directory, std::move(top).value(),
                                                std::move(records).value(),
                                                this_process(incarnation, socket)));
  Result<std::shared_ptr<HandoverServer>> server =
      HandoverServer::start(pool->records(), socket, std::move(asked));
  if (!server) return Error{directory + ": " + server.error()};
  pool->server_ = std::move(server).value();
  return pool;
}

std::shared_ptr<Place> LocalPool::place(const std::string& volume, const std::string& location) {
  return std::make_shared<LocalPlace>(shared_from_this(), volume, location);
}

Result<std::shared_ptr<Place>> LocalPool::place(const wire::DesiredVolume& volume,
                                                std::function<void()> /*wake*/) {
  return place(volume.uid(), volume.location());
}

void LocalPool::run_job(const wire::Job& job, const JobServices& services,
                        std::function<void(JobOutcome)> done) {
  done(control::run_job(*this, job, services.between));
}

void LocalPool::look_at(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  done(control::look_at(uid, *this));
}

}  // namespace sluice::control
