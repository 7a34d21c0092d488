// A volume's record (control/local/record.h) beside its image: the object `sluice.volume.<uid>` in
// the pool. The client that does the I/O writes it, so that a blocklisted client can't. If its text
// is damaged, the object's copy replaces it; the reservations of the copy may be older.
//
// Threads: those of an executor, one at a time; calls wait for Ceph.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/local/record.h"
#include "control_rbd/rados_object.h"

namespace sluice::control {

class RecordObject {
 public:
  // `pool`: for this object only, because it holds the version of the last read.
  RecordObject(std::shared_ptr<rbd::Pool> pool, const std::string& volume);

  // nullopt: no record yet.
  Result<std::optional<Record>> read();
  // Refuses an older epoch than the recorded one.
  Result<void> claim(const Record& record);
  // Refused unless the record names this process and this epoch.
  Result<void> update(const Record& record);
  Result<void> remove();

 private:
  struct Found {
    std::optional<Record> record;
    RadosObject::Found object;
  };
  Result<Found> find();
  // False: another client has written it meanwhile.
  Result<bool> replace(const Found& found, const Record& record);

  const std::string volume_;
  RadosObject object_;
  std::optional<Found> read_;  // from read(), until it is replaced
};

}  // namespace sluice::control
