// Typed access to the 48 bytes of the Basic Header Segment of every iSCSI PDU (RFC 7143 §11).
// Fields are read and written in place; nothing is copied, and values are not checked.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace sluice::pdu {

inline constexpr uint32_t kBhsSize = 48;
inline constexpr uint32_t kReservedTag = 0xffffffff;  // RFC 7143 §11.2.1.8

enum class Opcode : uint8_t {  // RFC 7143 §11.2.1.2
  kNopOut = 0x00,
  kScsiCommand = 0x01,
  kTaskManagementRequest = 0x02,
  kLoginRequest = 0x03,
  kTextRequest = 0x04,
  kDataOut = 0x05,
  kLogoutRequest = 0x06,
  kSnackRequest = 0x10,
  kNopIn = 0x20,
  kScsiResponse = 0x21,
  kTaskManagementResponse = 0x22,
  kLoginResponse = 0x23,
  kTextResponse = 0x24,
  kDataIn = 0x25,
  kLogoutResponse = 0x26,
  kR2t = 0x31,
  kAsyncMessage = 0x32,
  kReject = 0x3f,
};

// A header with its own memory, for building answers; reserved fields are initially zero.
struct Bhs {
  alignas(8) std::array<uint8_t, kBhsSize> bytes{};

  uint8_t* data() { return bytes.data(); }
  const uint8_t* data() const { return bytes.data(); }

  // --- fields at the same place in every PDU
  Opcode opcode() const { return static_cast<Opcode>(bytes[0] & 0x3f); }
  bool immediate() const { return bytes[0] & 0x40; }
  bool final() const { return bytes[1] & 0x80; }
  uint8_t flags() const { return bytes[1]; }
  uint32_t ahs_length() const { return uint32_t{bytes[4]} * 4; }  // bytes
  uint32_t data_length() const { return load_be24(&bytes[5]); }   // bytes, without padding
  uint64_t lun() const { return load_be64(&bytes[8]); }
  uint32_t itt() const { return load_be32(&bytes[16]); }

  void set_opcode(Opcode op) { bytes[0] = static_cast<uint8_t>(op); }
  void set_flags(uint8_t f) { bytes[1] = f; }
  void set_data_length(uint32_t n) { store_be24(&bytes[5], n); }
  void set_lun(uint64_t l) { store_be64(&bytes[8], l); }
  void set_itt(uint32_t t) { store_be32(&bytes[16], t); }

  // --- fields by offset; each caller cites the clause
  uint8_t u8(unsigned at) const { return bytes[at]; }
  uint16_t u16(unsigned at) const { return load_be16(&bytes[at]); }
  uint32_t u32(unsigned at) const { return load_be32(&bytes[at]); }
  void put8(unsigned at, uint8_t v) { bytes[at] = v; }
  void put16(unsigned at, uint16_t v) { store_be16(&bytes[at], v); }
  void put32(unsigned at, uint32_t v) { store_be32(&bytes[at], v); }

  // --- requests (RFC 7143 §11.3, §11.5, §11.10, §11.12, §11.14, §11.18)
  uint32_t cmd_sn() const { return u32(24); }
  uint32_t exp_stat_sn() const { return u32(28); }
  uint32_t target_transfer_tag() const { return u32(20); }   // Data-Out, NOP-Out, Text, SNACK
  uint32_t expected_data_length() const { return u32(20); }  // SCSI Command

  // --- answers
  void set_target_transfer_tag(uint32_t t) { put32(20, t); }
  void set_stat_sn(uint32_t sn) { put32(24, sn); }
  void set_window(uint32_t exp_cmd_sn, uint32_t max_cmd_sn) {
    put32(28, exp_cmd_sn);
    put32(32, max_cmd_sn);
  }
};

// SCSI Command flags (RFC 7143 §11.3.1)
inline constexpr uint8_t kFlagFinal = 0x80;
inline constexpr uint8_t kFlagRead = 0x40;
inline constexpr uint8_t kFlagWrite = 0x20;
inline constexpr uint8_t kAttributeMask = 0x07;
// Login and Text flags (§11.12, §11.10)
inline constexpr uint8_t kFlagTransit = 0x80;
inline constexpr uint8_t kFlagContinue = 0x40;
// Data-In and SCSI Response flags (§11.4, §11.7)
inline constexpr uint8_t kFlagOverflow = 0x04;
inline constexpr uint8_t kFlagUnderflow = 0x02;
inline constexpr uint8_t kFlagStatus = 0x01;

inline constexpr uint32_t padded(uint32_t n) { return (n + 3) & ~3u; }

enum class RejectReason : uint8_t {  // RFC 7143 §11.17.1
  kDataDigestError = 0x02,
  kSnackReject = 0x03,
  kProtocolError = 0x04,
  kCommandNotSupported = 0x05,
  kImmediateCommandReject = 0x06,
  kTaskInProgress = 0x07,
  kInvalidDataAck = 0x08,
  kInvalidPduField = 0x09,
  kLongOperationReject = 0x0a,
  kWaitingForLogout = 0x0c,
};

enum class TaskFunction : uint8_t {  // RFC 7143 §11.5.1
  kAbortTask = 1,
  kAbortTaskSet = 2,
  kClearAca = 3,
  kClearTaskSet = 4,
  kLogicalUnitReset = 5,
  kTargetWarmReset = 6,
  kTargetColdReset = 7,
  kTaskReassign = 8,
};

enum class TaskResponse : uint8_t {  // RFC 7143 §11.6.1
  kFunctionComplete = 0,
  kTaskDoesNotExist = 1,
  kLunDoesNotExist = 2,
  kTaskStillAllegiant = 3,
  kReassignNotSupported = 4,
  kFunctionNotSupported = 5,
  kAuthorizationFailed = 6,
  kFunctionRejected = 255,
};

enum class AsyncEvent : uint8_t {  // RFC 7143 §11.9.1
  kScsi = 0,
  kLogoutRequest = 1,
  kConnectionDrop = 2,
  kSessionDrop = 3,
  kNegotiation = 4,
};

}  // namespace sluice::pdu
