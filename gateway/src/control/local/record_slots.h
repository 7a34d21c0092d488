// The newest record of a volume in two slots of one file, which are overwritten in turn. A file
// system that overwrites in place (ext4, XFS, tmpfs) needs no free space for that, so a volume in a
// full pool can change its reservations, and its next owner can write what the last one could not.
// On a file system that copies on write (Btrfs, ZFS) the file is marked to be overwritten in place
// if that is supported.
//
//   sluice-record-slot 1
//   sequence 5                   increases with each write
//   replaces 8a9136aa            CRC32C of the text of `.volume` at that time
//   record 714                   bytes that follow (record.h)
//   ...
//   crc32c 5e3a77c2              over everything above
//
// Each write is synced. A power failure damages at most the slot that is being written, and the
// other one has the record before. A gateway of an earlier release does not know the slots and
// replaces `.volume`. Its text then differs from `replaces`, and takes precedence.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/local/record.h"

namespace sluice::control {

class RecordSlots {
 public:
  struct Slot {
    uint64_t sequence = 0;
    std::string replaces;
    std::string text;  // of the record
    Record record;
  };
  // A writer must exclude other writers from before find() until after the write.
  struct Found {
    size_t slot_bytes = 0;  // 0: the file's size is impossible
    std::array<std::optional<Slot>, 2> slots;
    // A slot is neither empty nor readable, or the file has an impossible size: the newest record
    // may be lost.
    bool damaged = false;
    const Slot* newest() const;
  };

  // `directory` is `.sluice` in the pool; it stays open for the life of this object.
  RecordSlots(int directory, std::string volume, std::string shown);

  // nullopt: there are no slots.
  Result<std::optional<Found>> find() const;
  // Makes slots that hold a record of `bytes`, and the small differences between one owner and the
  // next. The newest record stays. False: there is no room; the present slots stay, as after an
  // error.
  Result<bool> reserve(size_t bytes, const std::optional<Found>& found) const;
  // Synced when it returns. `replaces`: checksum_text() of `.volume`. False: there are no slots, or
  // `text` does not fit.
  Result<bool> write(std::string_view text, std::string_view replaces,
                     const std::optional<Found>& found) const;

 private:
  const int directory_;
  const std::string volume_;
  const std::string name_;
  const std::string shown_;
};

}  // namespace sluice::control
