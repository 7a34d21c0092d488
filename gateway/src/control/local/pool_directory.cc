#include "control/local/pool_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "control/local/directory_marker.h"
#include "control/local/file_size_limit.h"
#include "control/local/handover_socket.h"

namespace sluice::control {
namespace {

constexpr const char* kRecords = ".sluice";
constexpr std::string_view kSocketEnd = ".sock";

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

PoolDirectory::PoolDirectory(std::string path, FileDescriptor directory, FileDescriptor records,
                             Holder self, ExpectedPool expected, Identified identified)
    : path_(std::move(path)),
      directory_(std::move(directory)),
      records_(std::move(records)),
      self_(std::move(self)),
      expected_(std::move(expected)),
      identified_(std::move(identified)) {}

Result<std::shared_ptr<const PoolDirectory>> PoolDirectory::open(const std::string& directory,
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
  std::shared_ptr<PoolDirectory> pool(new PoolDirectory(
      directory, std::move(top).value(), std::move(records).value(),
      this_process(incarnation, socket), std::move(expected), std::move(identified).value()));
  if (foreign) return std::shared_ptr<const PoolDirectory>(std::move(pool));
  Result<std::shared_ptr<HandoverServer>> server =
      HandoverServer::start(pool->records(), socket, std::move(asked));
  if (!server) return Error{directory + ": " + server.error()};
  pool->server_ = std::move(server).value();
  return std::shared_ptr<const PoolDirectory>(std::move(pool));
}

ImageRecords PoolDirectory::image_records() const {
  const uint32_t adoptions = identified_.marker ? identified_.marker->adoptions : 0;
  return {.records = records_.get(), .path = path_, .adoptions = adoptions};
}

int64_t PoolDirectory::max_image_bytes() const {
  if (max_image_bytes_ == 0) max_image_bytes_ = probe_max_file_bytes(records());
  return max_image_bytes_;
}

std::string PoolDirectory::replaced() const {
  struct stat ours{}, named{};
  if (::fstat(directory_.get(), &ours) != 0 || ::stat(path_.c_str(), &named) != 0) {
    return path_ + ": " + reason_of(errno);
  }
  if (ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) return {};
  return path_ +
         " is another directory than before: a file system was mounted, unmounted or "
         "replaced there";
}

bool PoolDirectory::is_current(const wire::DesiredPool& desired) const {
  const std::optional<wire::PoolIdentity>& identity = expected_.identity;
  if (desired.has_identity() != identity.has_value()) return false;
  if (!identified_.doubt.empty() || !replaced().empty()) return false;
  if (!identity) return true;
  if (identity->SerializeAsString() != desired.identity().SerializeAsString()) return false;
  const Result<std::optional<PoolMarker>> marker = read_marker(directory_.get(), path_);
  return marker && marker.value() == identified_.marker;
}

}  // namespace sluice::control
