// One entry of the command table (command_table.h): the properties of a SCSI command.
#pragma once

#include <cstdint>

namespace sluice::scsi {

// One per handler in commands/. Variants of one command (READ 6/10/12/16) share one operation:
// decode_block_range() in cdb.h reads all their layouts.
enum class Operation : uint8_t {
  kTestUnitReady,
  kInquiry,
  kReportLuns,
  kRequestSense,
  kModeSense,
  kModeSelect,
  kLogSense,
  kReadCapacity,    // 10 and 16
  kRead,            // 6/10/12/16
  kWrite,           // 6/10/12/16
  kWriteAtomic,     // 16
  kWriteAndVerify,  // 10/12/16
  kVerify,          // 10/12/16
  kWriteSame,       // 10/16
  kUnmap,
  kGetLbaStatus,
  kCompareAndWrite,
  kOrWrite,           // 16
  kPreFetch,          // 10/16
  kSynchronizeCache,  // 10/16
  kStartStopUnit,
  kExtendedCopy,        // LID1
  kReceiveCopyResults,  // COPY STATUS, RECEIVE DATA, OPERATING PARAMETERS, FAILED SEGMENT DETAILS
  kPopulateToken,
  kWriteUsingToken,
  kReceiveRodTokenInformation,
  kReserve6,
  kRelease6,
  kPersistentReserveIn,
  kPersistentReserveOut,
  kReportTargetPortGroups,
  kSetTargetPortGroups,  // answers 05/24/00 (implicit ALUA only, DESIGN R11)
  kReportSupportedOperationCodes,
  kReportSupportedTaskManagementFunctions,
  kReportTimestamp,               // may stay unused
  kReportIdentifyingInformation,  // may stay unused
  kSendDiagnostic,                // the default self-test
  kPassThrough,                   // rows of pass_through_commands.h
  kCount,
};

// What the gate (commands/gate) asks before a command runs.
enum CommandFlag : uint16_t {
  kMediumRead = 1 << 0,            // reads logical blocks
  kMediumWrite = 1 << 1,           // changes logical blocks: refused 07/27/00 on a read-only unit
  kIgnoresUnitAttention = 1 << 2,  // INQUIRY, REPORT LUNS, REQUEST SENSE: SPC-5 §5.12
  // Persistent reservations, SPC-5 §5.14 table of commands: allowed for a nexus that does not hold
  // the reservation and is not registered where that matters ...
  kAllowedUnderWriteExclusive = 1 << 3,   // ... under WE, WE-RO, WE-AR
  kAllowedUnderExclusiveAccess = 1 << 4,  // ... under EA, EA-RO, EA-AR
  kAllowedUnderReserve6 = 1 << 5,         // ... under another nexus's RESERVE(6), SPC-2 §5.5.1
  // Asymmetric access states other than Optimized and Non-Optimized, SPC-5 §5.16.2.
  kAllowedInStandby = 1 << 6,
  kAllowedInUnavailable = 1 << 7,
  kAllowedInTransition = 1 << 8,
  kWellKnownLun = 1 << 9,  // also served by the REPORT LUNS well-known LUN (C101h)
  kAnyLun = 1 << 10,       // also served for a LUN that does not exist
  kNeedsReady = 1 << 11,   // refused with NOT READY while the medium is gone
  kDataOut = 1 << 12,      // takes data from the initiator
};

inline constexpr uint16_t kNoServiceAction = 0xffff;

struct CommandInfo {
  uint8_t opcode;
  uint16_t service_action;  // kNoServiceAction when the opcode has none
  uint8_t cdb_length;       // bytes; 0: variable (7Fh)
  Operation operation;
  uint16_t flags;  // CommandFlag
  // CDB usage data as REPORT SUPPORTED OPERATION CODES shows it (SPC-5 §6.35.3): byte 0 is the
  // opcode, in the others a 1 marks a bit that is looked at. A bit set in a CDB that is 0 here is
  // an invalid field.
  uint8_t usage[16];
  uint16_t timeout_seconds;  // recommended command timeout, for the command timeouts descriptor
  const char* name;          // as in the standard, for logs and metrics
};

}  // namespace sluice::scsi
