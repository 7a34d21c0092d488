// A volume's record (control/local/record.h) beside its image: an object `sluice.volume.<uid>` in
// the pool, written by the client that does the I/O, so that one that is blocklisted can't.
//
// Threads: workers, one at a time; calls wait for Ceph.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/local/record.h"
#include "control_rbd/rados_object.h"

namespace sluice::control {

class RecordObject {
 public:
  // `pool`: of its own, for the version of what was read last is its.
  RecordObject(std::shared_ptr<rbd::Pool> pool, const std::string& volume);

  // nullopt: there is none yet.
  Result<std::optional<Record>> read();
  // An older epoch than the recorded one is refused.
  Result<void> claim(const Record& record);
  // Refused unless this process is recorded, in this epoch.
  Result<void> update(const Record& record);
  Result<void> remove();

 private:
  struct Found {
    std::optional<Record> record;
    RadosObject::Found object;
  };
  Result<Found> find();
  // False: somebody has written it meanwhile.
  Result<bool> replace(const Found& found, const Record& record);

  const std::string volume_;
  RadosObject object_;
  std::optional<Found> read_;  // by read(), until it is replaced
};

}  // namespace sluice::control
