// The newest claims on a local volume: the lock's holder, its order and its epoch. A claim is a
// short record (record.h) without reservations. Each slot has a fixed position in one file and is
// overwritten there, which costs one data sync. No file is created or renamed, so nothing else
// needs a sync.
//
// - Slot 0: a holder that just got the lock and has no new epoch yet. Not synced; valid until the
//   next boot.
// - Slots 1 and 2: the owner that serves; synced. Writes alternate, so that a power failure damages
//   the older one at most.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "control/local/files.h"
#include "control/local/record.h"

namespace sluice::control {

class ClaimSlots {
 public:
  // The content of the slots. A writer must exclude other writers from before the read until after
  // the write, because it chooses the slot to write from the content.
  struct Found {
    FileDescriptor file;
    std::array<std::optional<Record>, 3> records;
    bool damaged = false;
    bool has_any() const { return records[0] || records[1] || records[2]; }
  };
  enum class For : uint8_t { kReading, kWriting };

  // `directory` is `.sluice` in the pool; it stays open for the life of this object.
  ClaimSlots(int directory, std::string volume, std::string shown);

  // nullopt: there are no slots.
  Result<std::optional<Found>> find(For purpose) const;
  // Updates `record` from the slots. A slot counts if its epoch is newer, or if its epoch is the
  // same and its order is not older; then its epoch, order and holder are copied. An unreadable
  // slot is ignored. Error: both synced slots are unreadable, because only one can have been in
  // progress.
  Result<void> bring_up(const std::optional<Found>& slots, Record* record) const;
  // Empties all slots permanently.
  Result<void> clear() const;
  // False: there are no slots, or `record` does not fit into one. `slots`: found with the purpose
  // to write.
  Result<bool> write(const Record& record, Outlasts outlasts,
                     const std::optional<Found>& slots) const;

 private:
  const int directory_;
  const std::string volume_;
  const std::string name_;
  const std::string shown_;
};

}  // namespace sluice::control
