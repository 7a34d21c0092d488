// The newest claims of a local volume: who has its lock, by which order and in which epoch, as
// short records (record.h) without reservations. Each has a place of its own in one file and is
// written over there: one sync of data, with no new file and no rename to sync as well.
//
//   slot 0       who has just got the lock and has no new epoch yet: not synced, valid until the
//                next boot
//   slots 1, 2   who serves, synced: in turns, so that a power cut spoils the older one at most
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
  // What was in the slots, and where it was. Written over there by who has excluded other writers
  // since before it looked: what it decides by is what it writes beside.
  struct Found {
    FileDescriptor file;
    std::array<std::optional<Record>, 3> records;
    bool damaged = false;
    bool has_any() const { return records[0] || records[1] || records[2]; }
  };
  enum class For : uint8_t { kReading, kWriting };

  // `directory` is `.sluice` in the pool, open for the life of this object.
  ClaimSlots(int directory, std::string volume, std::string shown);

  // nullopt: there are no slots.
  Result<std::optional<Found>> find(For purpose) const;
  // What is newest of `record` and of the slots: with a newer epoch, or in the same one with no
  // older order, a slot's epoch, order and holder are put into `record`. A slot that can't be read
  // is as none, but not both of the synced ones: at most one was being written.
  Result<void> bring_up(const std::optional<Found>& slots, Record* record) const;
  // Makes all slots empty, for good.
  Result<void> clear() const;
  // False: there are no slots, or `record` doesn't fit into one. `slots`: found to be written.
  Result<bool> write(const Record& record, Outlasts outlasts,
                     const std::optional<Found>& slots) const;

 private:
  const int directory_;
  const std::string volume_;
  const std::string name_;
  const std::string shown_;
};

}  // namespace sluice::control
