// Status and sense data (SAM-5 §5.3, SPC-5 §4.4). Pure: no I/O, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace sluice::scsi {

enum class Status : uint8_t {  // SAM-5 §5.3.1
  kGood = 0x00,
  kCheckCondition = 0x02,
  kConditionMet = 0x04,
  kBusy = 0x08,
  kReservationConflict = 0x18,
  kTaskSetFull = 0x28,
  kAcaActive = 0x30,
  kTaskAborted = 0x40,
};

enum class SenseKey : uint8_t {  // SPC-5 §4.4.8
  kNoSense = 0x0,
  kRecoveredError = 0x1,
  kNotReady = 0x2,
  kMediumError = 0x3,
  kHardwareError = 0x4,
  kIllegalRequest = 0x5,
  kUnitAttention = 0x6,
  kDataProtect = 0x7,
  kBlankCheck = 0x8,
  kCopyAborted = 0xa,
  kAbortedCommand = 0xb,
  kVolumeOverflow = 0xd,
  kMiscompare = 0xe,
};

// What the unit of a copy source or destination answered, for COPY ABORTED (SPC-5 §4.4.2.7).
enum class CopyParty : uint8_t { kNone, kSource, kDestination };
struct CopyCause {
  CopyParty party = CopyParty::kNone;
  Status status = Status::kGood;
  SenseKey key = SenseKey::kNoSense;  // kNoSense: it gave no sense data
  uint8_t asc = 0;
  uint8_t ascq = 0;
  bool has_information = false;
  uint64_t information = 0;
};

// What a CHECK CONDITION says. Encoded late, because the format (fixed or descriptor) depends on
// D_SENSE of the control mode page at the time the command ends.
struct Sense {
  SenseKey key = SenseKey::kNoSense;
  uint8_t asc = 0;
  uint8_t ascq = 0;

  bool has_information = false;  // INFORMATION field: an LBA, a byte offset, a count
  uint64_t information = 0;
  bool has_command_specific = false;
  uint64_t command_specific = 0;

  // Sense-key specific data (SPC-5 §4.4.2.4)
  enum class Specific : uint8_t { kNone, kFieldPointer, kProgress, kSegmentPointer };
  Specific specific = Specific::kNone;
  bool in_cdb = false;     // C/D: the fault lies in the CDB (else in the parameter list)
  bool bit_valid = false;  // BPV
  uint8_t bit = 0;         // most significant bit of the faulty field
  uint16_t pointer = 0;    // field pointer in bytes, or progress in 1/65536

  CopyCause cause = {};

  // The two "ILLEGAL REQUEST" answers nearly every check needs.
  static Sense invalid_field_in_cdb(uint16_t byte, int bit_number = -1) {
    return field(0x24, byte, bit_number, true);
  }
  static Sense invalid_field_in_parameter_list(uint16_t byte, int bit_number = -1) {
    return field(0x26, byte, bit_number, false);
  }
  static Sense make(SenseKey key, uint8_t asc, uint8_t ascq) {
    Sense s;
    s.key = key;
    s.asc = asc;
    s.ascq = ascq;
    return s;
  }
  // 05/21/00 LOGICAL BLOCK ADDRESS OUT OF RANGE, INFORMATION = first LBA out of range
  // (reported only in sense formats that can hold it).
  static Sense lba_out_of_range(uint64_t first_bad_lba) {
    Sense s = make(SenseKey::kIllegalRequest, 0x21, 0x00);
    s.has_information = true;
    s.information = first_bad_lba;
    return s;
  }

 private:
  static Sense field(uint8_t asc, uint16_t byte, int bit_number, bool cdb) {
    Sense s = make(SenseKey::kIllegalRequest, asc, 0x00);
    s.specific = Specific::kFieldPointer;
    s.in_cdb = cdb;
    s.pointer = byte;
    if (bit_number >= 0) {
      s.bit_valid = true;
      s.bit = static_cast<uint8_t>(bit_number);
    }
    return s;
  }
};

inline constexpr size_t kMaxSenseBytes = 96;

// Writes current sense data (response code 70h or 72h) and returns its length.
size_t encode(const Sense& sense, bool descriptor_format, std::span<uint8_t, kMaxSenseBytes> out);

}  // namespace sluice::scsi
