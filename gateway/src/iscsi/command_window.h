// CmdSN, ExpCmdSN and MaxCmdSN of a session (RFC 7143 §4.2.2.1). Serial number arithmetic of
// RFC 1982 over 32 bits.
#pragma once

#include <cstdint>

namespace sluice::iscsi {

inline bool serial_less(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

class CommandWindow {
 public:
  CommandWindow(uint32_t first_cmd_sn, uint32_t size) : expected_(first_cmd_sn), size_(size) {}

  enum class Verdict : uint8_t {
    kNext,     // the expected one: call advance() and execute it
    kEarly,    // inside the window, after a gap: wait until the gap is filled
    kOutside,  // below or above the window: ignore it silently
  };
  Verdict judge(uint32_t cmd_sn) const {
    if (cmd_sn == expected_) return serial_less(max(), cmd_sn) ? Verdict::kOutside : Verdict::kNext;
    if (serial_less(cmd_sn, expected_) || serial_less(max(), cmd_sn)) return Verdict::kOutside;
    return Verdict::kEarly;
  }
  void advance() {
    ++expected_;
    ++open_;
  }
  // A command that occupied a number of the window has ended.
  void release() { --open_; }

  uint32_t expected() const { return expected_; }
  // Never decreases: advance() increments both terms, and release() increases it (R14: the window
  // limits an initiator).
  uint32_t max() const { return expected_ + size_ - open_ - 1; }
  uint32_t size() const { return size_; }
  uint32_t open() const { return open_; }

 private:
  uint32_t expected_;
  uint32_t size_;
  uint32_t open_ = 0;
};

}  // namespace sluice::iscsi
