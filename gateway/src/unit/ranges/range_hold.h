// A hold on a block range of one unit (DESIGN R5).
#pragma once

#include <cstdint>

namespace sluice::lun {

// Intrusive: embedded in the object that needs it, which must not move while the hold is active.
// The fields below `context` belong to the range table.
struct RangeHold {
  uint64_t first = 0;  // block
  uint64_t last = 0;   // block, inclusive
  bool exclusive = false;
  bool granted = false;
  void (*on_grant)(RangeHold&) = nullptr;  // called if acquire() had to wait
  void* context = nullptr;

  enum class State : uint8_t { kIdle, kWaiting, kTicketed, kReady, kGranted };
  State state = State::kIdle;
  uint16_t slot = 0;
  uint64_t ticket = 0;           // order among holds that overlapped one of another reactor
  RangeHold* blocker = nullptr;  // the hold that blocks a waiting one; null: the table was full
  RangeHold* previous = nullptr;
  RangeHold* next = nullptr;
};

}  // namespace sluice::lun
