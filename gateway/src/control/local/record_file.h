// The record of a local volume where it is kept. A claim that changes no more than epoch, order and
// holder is written beside the record, into a slot (claim_slots.h), and what the newest slot says
// of these counts. All else is in the record.
#pragma once

#include <optional>
#include <string>

#include "control/local/claim_slots.h"
#include "control/local/files.h"
#include "control/local/record.h"

namespace sluice::control {

class RecordFile {
 public:
  // `directory` is `.sluice` in the pool, open for the life of this object.
  RecordFile(int directory, std::string volume, std::string shown);

  // nullopt: there is none yet. A record that can't be trusted is an error: hosts rely on the
  // reservations in it.
  Result<std::optional<Record>> read() const;
  // By whoever holds the lock on the data, and only then. An older epoch than the recorded one is
  // refused.
  Result<void> claim(const Record& record, Outlasts outlasts) const;
  // Refused unless this very process is recorded as holder, in this epoch: a writer that a dying
  // disk held up until another gateway had the lock changes nothing any more.
  Result<void> update(const Record& record) const;

 private:
  struct Present {
    std::optional<Record> record = {};
    std::optional<ClaimSlots::Found> slots = {};  // without a record none are looked for
  };
  Result<FileDescriptor> guard() const;
  Result<Present> present(ClaimSlots::For purpose) const;
  Result<void> write(const Record& record) const;
  Result<bool> note(const Record& record) const;

  const int directory_;
  const std::string volume_;
  const std::string shown_;
  const ClaimSlots slots_;
};

}  // namespace sluice::control
