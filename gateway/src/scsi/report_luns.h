// REPORT LUNS (SPC-5 §6.33) and the LUN format (SAM-5 §4.7).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

inline constexpr uint64_t kReportLunsWellKnownLun = 0xc101'0000'0000'0000;
inline constexpr uint64_t kMaxLunNumber = 0x3fff;  // 14 bits of flat space addressing

// 8-byte LUN field of a LUN number: peripheral device addressing below 256, else flat space.
uint64_t lun_field(uint64_t number);
// The inverse; accepts both methods for any number, and single-level only. false: not a LUN number
// (well-known, extended, or levels below the first).
bool lun_number(uint64_t field, uint64_t* number);
// Whether the fields name the same LUN: peripheral and flat space addressing can.
bool same_lun(uint64_t a, uint64_t b);

// `numbers` sorted. SELECT REPORT 00h, 01h, 02h, 10h, 11h, 12h; others 05/24/00; an allocation
// length below 16 is refused (SPC-5 §6.33.1).
// `out` needs 8 + 8 * (numbers.size() + 1) bytes to hold everything.
Outcome<size_t> build_report_luns(ByteView cdb, std::span<const uint64_t> numbers,
                                  MutableBytes out);

}  // namespace sluice::scsi
