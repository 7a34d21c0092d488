// A storage pool in a directory of this node, shared by the node's gateways:
//
//   <directory>/...              volumes' files, by their locations
//   <directory>/.sluice/         records of volumes and sockets of gateways
#pragma once

#include <memory>
#include <string>

#include "control/local/lock_handover.h"
#include "control/volume/storage_pool.h"

namespace sluice::control {

class LocalPool : public StoragePool, public std::enable_shared_from_this<LocalPool> {
 public:
  // Makes `.sluice` if need be and listens there for requests for locks.
  static Result<std::shared_ptr<LocalPool>> open(const std::string& directory,
                                                 const std::string& incarnation,
                                                 HandoverServer::Asked asked);

  // A volume at a path below the directory.
  std::shared_ptr<Place> place(const std::string& volume, const std::string& location);

  // --- StoragePool
  Result<std::shared_ptr<Place>> place(const wire::DesiredVolume& volume,
                                       std::function<void()> wake) override;
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override;
  void look_at(const std::string& uid, std::function<void(wire::PoolObserved)> done) override;

  const std::string& path() const { return path_; }
  int directory() const { return directory_.get(); }
  int records() const { return records_.get(); }
  const Holder& self() const { return self_; }

 private:
  LocalPool(std::string path, FileDescriptor directory, FileDescriptor records, Holder self);

  const std::string path_;
  const FileDescriptor directory_;
  const FileDescriptor records_;
  const Holder self_;
  std::shared_ptr<HandoverServer> server_;
};

}  // namespace sluice::control
