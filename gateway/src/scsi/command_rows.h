// Abbreviations for the rows of the command table. The rows are in primary_commands.h,
// block_commands.h and pass_through_commands.h, and only command_table.cc includes those.
//
// Usage bytes: opcode and SERVICE ACTION have their values, every other byte is a mask of the bits
// that the gateway evaluates. A set bit outside of the mask is refused. Deliberately not in the
// masks: RDPROTECT, WRPROTECT and VRPROTECT (no protection information), RARC, the obsolete FUA_NV,
// SYNC_NV and RELADR, the SCSI-2 LUN field of 6-byte CDBs, CMDDT, SP and RTD (no saved pages), LOEJ
// and power conditions.
#pragma once

#include "scsi/command_info.h"

namespace sluice::scsi {
namespace rows {

inline constexpr uint16_t kNone = kNoServiceAction;
inline constexpr uint8_t kAll = 0xff;
inline constexpr uint8_t kDpoFua = 0x18;
inline constexpr uint8_t kGroup = 0x3f;  // GROUP NUMBER: accepted, not counted

// Reservations: SPC-5 §5.14.1 (table of SPC commands), SBC-4 §4.17 (table of SBC commands).
inline constexpr uint16_t kWe = kAllowedUnderWriteExclusive;
inline constexpr uint16_t kAnyPr = kAllowedUnderWriteExclusive | kAllowedUnderExclusiveAccess;
// Commands that a unit answers in every state (SPC-5 §5.12, §5.16.2; SPC-2 §5.5.1).
inline constexpr uint16_t kAlways = kIgnoresUnitAttention | kAnyPr | kAllowedUnderReserve6 |
                                    kAllowedInStandby | kAllowedInUnavailable |
                                    kAllowedInTransition | kWellKnownLun | kAnyLun;
inline constexpr uint16_t kReads = kMediumRead | kNeedsReady | kWe;
inline constexpr uint16_t kWrites = kMediumWrite | kNeedsReady | kDataOut;
inline constexpr uint16_t kReadsAndWrites = kMediumRead | kWrites;

inline constexpr uint16_t kQuick = 30;   // seconds: answered from memory
inline constexpr uint16_t kMedium = 60;  // one transfer
inline constexpr uint16_t kLong = 180;   // the most that one command can request

using Op = Operation;

}  // namespace rows
}  // namespace sluice::scsi
