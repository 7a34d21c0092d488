// The record of a local volume where it is kept: the file `.volume`, and the same text in `.copy`,
// so that the volume survives damage to either file. Writers write the copy first. Where `.volume`
// is damaged or missing, the copy gives epoch, order and holder; where both are damaged, the claims
// do. The reservations then come from the store alone, because a gateway of release 880afa1 writes
// no copy. The next owner writes both files anew once it has them. A claim that changes no more
// than epoch, order and holder is written beside the record, into a slot (claim_slots.h), and what
// the newest slot says of these counts. All else is in the record.
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

  // nullopt: there is none yet. Error: all that would say which epoch was served last is damaged.
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
    bool incomplete = false;                      // one of both files is damaged, missing or older
  };
  // One of both files.
  struct Text {
    bool exists = false;
    std::optional<Record> record = {};
    std::string problem = {};  // why it can't be used
  };
  Result<Text> text_in(const char* file) const;
  Result<FileDescriptor> guard() const;
  Result<Present> present(ClaimSlots::For purpose) const;
  Result<void> write(const Record& record) const;
  Result<bool> note(const Record& record) const;
  Result<void> note_in_doubt(const Record& record, bool slots_exist) const;

  const int directory_;
  const std::string volume_;
  const std::string shown_;
  const ClaimSlots slots_;
};

}  // namespace sluice::control
