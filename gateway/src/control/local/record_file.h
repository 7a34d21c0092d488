// The record of a local volume on disk: the file `.volume` and the same text in `.copy`, so that
// the volume survives damage to either file. Before these two are replaced, the record is written
// into a slot that exists (record_slots.h). It is stored then, even if the pool is full and the
// files keep their earlier text. Writers write the copy before `.volume`.
//
// If `.volume` is damaged or missing, the copy supplies epoch, order and holder; if both are
// damaged, the claims do. The reservations then come from the store alone, because a gateway of
// release 880afa1 writes no copy. The same holds if a slot is damaged. The next owner rewrites all
// of them when it knows the reservations.
//
// A claim that changes only epoch, order and holder goes into a shorter slot of another file
// (claim_slots.h), and the newest slot takes precedence for these values. All other values are in
// the record.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/local/claim_slots.h"
#include "control/local/files.h"
#include "control/local/record.h"
#include "control/local/record_slots.h"

namespace sluice::control {

class RecordFile {
 public:
  // `directory` is `.sluice` in the pool; it stays open for the life of this object.
  RecordFile(int directory, std::string volume, std::string shown);

  // nullopt: no record yet. Error: damage has destroyed every copy of the last served epoch.
  Result<std::optional<Record>> read() const;
  // The caller must hold the lock on the data. An older epoch than the recorded one is refused.
  Result<void> claim(const Record& record, Outlasts outlasts) const;
  // Refused unless the record names this process and this epoch: a write that a failing disk
  // delayed until another gateway had the lock must not change the record.
  Result<void> update(const Record& record) const;
  // Makes room, so that update() with this record, and a claim of it by a later owner, needs no
  // free space. False: there is none. Nothing has changed then, nor after an error.
  Result<bool> reserve(const Record& record) const;

 private:
  struct Present {
    std::optional<Record> record = {};
    std::string checksum = {};  // of the text of `.volume`
    std::optional<RecordSlots::Found> record_slots = {};
    std::optional<ClaimSlots::Found> slots = {};  // not searched without a record
    // one of the files is damaged, missing or older
    bool incomplete = false;
  };
  // One of the two files.
  struct Text {
    bool exists = false;
    std::optional<Record> record = {};
    std::string problem = {};  // why it is unusable
    std::string checksum = {};
  };
  Result<Text> text_in(const char* file) const;
  static Present newest_of(Text text, Text copy, std::optional<RecordSlots::Found> slots);
  Result<FileDescriptor> guard() const;
  Result<void> try_claim(const Record& record, Outlasts outlasts) const;
  Result<Present> present(ClaimSlots::For purpose) const;
  Result<void> write(const Record& record, const Present& present) const;
  Result<void> refresh_slots(std::string_view text, const Present& present) const;
  Result<bool> note(const Record& record) const;
  Result<void> note_in_doubt(const Record& record, bool slots_exist) const;

  const int directory_;
  const std::string volume_;
  const std::string shown_;
  const ClaimSlots slots_;
  const RecordSlots record_slots_;
};

}  // namespace sluice::control
