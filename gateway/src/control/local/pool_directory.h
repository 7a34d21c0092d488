// The directory of a storage pool, opened and identified. It is shared by the node's gateways:
//
//   <directory>/...              volumes' files, by their locations
//   <directory>/.sluice/         records of volumes, identities of their files, sockets of gateways
//   <directory>/.sluice/pool     marks the directory as this pool's (pool_marker.h)
//
// A pool of devices has such a directory for its records (device_pool.h). Storages of volumes share
// ownership, so the directory and its socket stay as long as a volume uses them.
//
// Threads: any.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "control/local/files.h"
#include "control/local/image_identity.h"
#include "control/local/lock_handover.h"
#include "control/local/pool_marker.h"

namespace sluice::control {

class PoolDirectory {
 public:
  // Verifies the marker, creates `.sluice` if necessary and listens there for lock requests. A
  // directory that does not match `expected` is opened in doubt; nothing is written into it.
  static Result<std::shared_ptr<const PoolDirectory>> open(const std::string& directory,
                                                           const std::string& incarnation,
                                                           HandoverServer::Asked asked,
                                                           ExpectedPool expected = {});

  // Whether this object still matches `desired`. A pool in doubt is verified at each call, because
  // its remedy happens outside this process.
  bool is_current(const wire::DesiredPool& desired) const;
  // Why the directory is not the opened one: a filesystem was mounted or unmounted at its path, or
  // it was replaced. Empty: it is the same.
  std::string replaced() const;
  const Identified& identified() const { return identified_; }
  ImageRecords image_records() const;
  // Largest size of an image in bytes, determined once; 0: unknown.
  int64_t max_image_bytes() const;

  const std::string& path() const { return path_; }
  int directory() const { return directory_.get(); }
  int records() const { return records_.get(); }
  const Holder& self() const { return self_; }

 private:
  PoolDirectory(std::string path, FileDescriptor directory, FileDescriptor records, Holder self,
                ExpectedPool expected, Identified identified);

  const std::string path_;
  const FileDescriptor directory_;
  const FileDescriptor records_;  // invalid if the directory belongs to another pool
  const Holder self_;
  const ExpectedPool expected_;
  const Identified identified_;
  mutable std::atomic<int64_t> max_image_bytes_{0};
  std::shared_ptr<HandoverServer> server_;
};

}  // namespace sluice::control
