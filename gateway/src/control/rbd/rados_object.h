// A small object of a pool, such as a record or marker. A write succeeds only if the object is
// unchanged since the read. The same write stores a copy of the text in the object's omap, which
// Ceph keeps apart from its data, so that damage to the data does not lose the text.
//
// Threads: those of an executor, one at a time; calls wait for Ceph.
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
    // nullopt: there is none, or it is longer than the limit. It is older than the text if a
    // release without copies wrote the object last.
    std::optional<std::string> copy = {};
    uint64_t version = 0;
    // False: the text or the copy is damaged or missing, and the next replace() writes both.
    bool is_complete() const { return text && copy == text; }
  };

  // `pool`: no other object may use it at the same time, because the pool holds the version of the
  // last read.
  RadosObject(std::shared_ptr<rbd::Pool> pool, std::string name);

  const std::string& shown() const { return shown_; }  // its name in errors
  // Reads `likely` bytes first, then up to `most` if the object is longer.
  Result<Found> read(size_t likely, size_t most);
  // Writes text and copy. False: another client wrote the object since it was read.
  Result<bool> replace(const Found& found, const std::string& text);
  // Succeeds if there is no such object.
  Result<void> remove();

 private:
  // Reads the first bytes of the text, and the copy.
  Result<Found> read_first(size_t bytes, size_t most);
  Error failed(const std::string& what, int r) const;

  const std::shared_ptr<rbd::Pool> pool_;
  const std::string name_;
  const std::string shown_;
};

}  // namespace sluice::control
