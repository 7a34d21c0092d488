// A small object of a pool, such as a record or marker. A write succeeds only if the object is
// unchanged since the read. The same write stores a copy of the text in the object's omap, which
// Ceph keeps apart from its data, so that damage to the data does not lose the text.
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

  // `pool`: no other object may use it at the same time, because the pool holds the version of the
  // last read.
  RadosObject(std::shared_ptr<rbd::Pool> pool, std::string name);

  const std::string& shown() const { return shown_; }  // its name in errors
  // Reads `likely` bytes first, then up to `most` if the object is longer.
  Result<Found> read(size_t likely, size_t most);
  // The copy of the text, of `most` bytes at most. nullopt: there is none, or it is longer. It is
  // older than the text if a release without copies wrote the object last.
  Result<std::optional<std::string>> read_copy(size_t most);
  // Writes text and copy. False: another client wrote the object since it was read.
  Result<bool> replace(const Found& found, const std::string& text);
  // Succeeds if there is no such object.
  Result<void> remove();

 private:
  Error failed(const std::string& what, int r) const;

  const std::shared_ptr<rbd::Pool> pool_;
  const std::string name_;
  const std::string shown_;
};

}  // namespace sluice::control
