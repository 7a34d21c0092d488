// A small object of a pool, as records and markers are, replaced only as it was read.
//
// Threads: workers, one at a time; calls wait for Ceph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "rbd/rados_client.h"

namespace sluice::control {

class RadosObject {
 public:
  struct Found {
    std::optional<std::string> text = {};  // nullopt: there is no such object
    uint64_t version = 0;
  };

  // `pool`: no other object may use it at the same time, because the version of the last read is
  // the pool's.
  RadosObject(std::shared_ptr<rbd::Pool> pool, std::string name);

  const std::string& shown() const { return shown_; }  // in errors
  // Reads `likely` bytes first, and `most` where that is not all.
  Result<Found> read(size_t likely, size_t most);
  // False: another client has written it since it was read.
  Result<bool> replace(const Found& found, const std::string& text);
  // No error where there is no such object.
  Result<void> remove();

 private:
  Error failed(const std::string& what, int r) const;

  const std::shared_ptr<rbd::Pool> pool_;
  const std::string name_;
  const std::string shown_;
};

}  // namespace sluice::control
