// The bytes that the executing READs of a session may produce: in total, and for each LUN.
//
// A LUN whose READs do not complete must not delay the READs of other LUNs of the session
// (DESIGN R15). So each LUN may have some in progress, whatever the others have. LUNs are
// distinguished by a few bits of their numbers: two LUNs of one slot share its part.
//
// Threads: one reactor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace sluice::iscsi {

class ReadsInProgress {
 public:
  static constexpr unsigned kSlots = 16;
  // Bytes that a LUN may have in progress although the session has its limit.
  static constexpr size_t kShare = limits::kMaxOutputBytes / 8;

  // The slot of a LUN, 0 to kSlots - 1. SAM-5 §4.7: the number is in the first two bytes.
  static unsigned slot(uint64_t lun_field) {
    return static_cast<unsigned>(lun_field >> 48) & (kSlots - 1);
  }
  void begin(uint64_t lun_field, size_t bytes) {
    total_ += bytes;
    by_slot_[slot(lun_field)] += bytes;
  }
  void end(uint64_t lun_field, size_t bytes) {
    total_ -= bytes;
    by_slot_[slot(lun_field)] -= bytes;
  }
  size_t total() const { return total_; }
  size_t of(uint64_t lun_field) const { return by_slot_[slot(lun_field)]; }
  // A READ that is larger than the share may be the only one.
  bool within_share(uint64_t lun_field, size_t bytes) const {
    const size_t running = of(lun_field);
    return running + bytes <= (running == 0 ? size_t{limits::kMaxOutputBytes} : kShare);
  }

 private:
  size_t total_ = 0;
  std::array<size_t, kSlots> by_slot_{};
};

}  // namespace sluice::iscsi
