// Rows of the command table: commands that the SCSI device behind a unit answers itself, byte for
// byte. They exist only for units on such a device (Support::pass_through).
//
// A command is listed only if it is safe: it reads; it reports nothing about identity, ports,
// reservations or other initiators; and it does not change the device. LOG SENSE is one of them,
// through its own handler. The following commands are intentionally missing, and therefore refused
// with 05/20/00 like every unknown code.
//
// Commands that destroy data of all initiators, regardless of reservations: FORMAT UNIT 04h,
// SANITIZE 48h, REASSIGN BLOCKS 07h, WRITE LONG 3Fh/9Fh-11h, REMOVE ELEMENT AND TRUNCATE 9Eh-18h
// (all of SBC-4).
//
// Commands that change the device (firmware, settings): WRITE BUFFER 3Bh, LOG SELECT 4Ch, SET
// TIMESTAMP A4h-0Fh, SET IDENTIFYING INFORMATION A4h-06h, BACKGROUND CONTROL 9Eh-15h.
//
// READ BUFFER modes other than 02h and 03h: vendor specific, echo buffers shared between
// initiators, error history whose reading locks it (SPC-5, READ BUFFER(10) command).
//
// Commands that carry other protocols, which the gateway could not check: SECURITY PROTOCOL IN/OUT
// A2h/B5h, ATA PASS-THROUGH 85h/A1h, variable-length CDBs 7Fh.
//
// Identity, which the gateway defines itself (DESIGN R13): REPORT IDENTIFYING INFORMATION A3h-05h,
// READ MEDIA SERIAL NUMBER ABh-01h, REPORT ALIASES A3h-0Bh.
//
// Commands that the gateway implements, in other rows: RESERVE, RELEASE, PERSISTENT RESERVE,
// EXTENDED COPY, target port groups.
//
// Reservations: if the tables of commands permitted during another nexus's reservation (SPC-5 and
// SBC-4, Reservations) leave room for interpretation, the stricter one applies: permitted without a
// reservation, or during WRITE EXCLUSIVE only.
#pragma once

#include "scsi/command_rows.h"

namespace sluice::scsi::rows {

inline constexpr CommandInfo kPassThroughCommands[] = {
    // SPC-5, RECEIVE DIAGNOSTIC RESULTS command
    {0x1c,
     kNone,
     6,
     Op::kPassThrough,
     kNeedsReady,
     {0x1c, 0x01, kAll, kAll, kAll},
     kMedium,
     "RECEIVE DIAGNOSTIC RESULTS"},
    // SBC-4, READ DEFECT DATA (10) command
    {0x37,
     kNone,
     10,
     Op::kPassThrough,
     kNeedsReady | kWe,
     {0x37, 0, 0x1f, 0, 0, 0, 0, kAll, kAll},
     kMedium,
     "READ DEFECT DATA(10)"},
    // SPC-5, READ BUFFER(10) command; modes 02h (data) and 03h (descriptor),
    // commands/pass_through.cc
    {0x3c,
     kNone,
     10,
     Op::kPassThrough,
     kNeedsReady,
     {0x3c, 0x03, kAll, kAll, kAll, kAll, kAll, kAll, kAll},
     kMedium,
     "READ BUFFER(10)"},
    // SBC-4, GET STREAM STATUS command
    {0x9e,
     0x16,
     16,
     Op::kPassThrough,
     kNeedsReady | kWe,
     {0x9e, 0x16, 0, 0, kAll, kAll, 0, 0, 0, 0, kAll, kAll, kAll, kAll},
     kQuick,
     "GET STREAM STATUS"},
    // SBC-4, GET PHYSICAL ELEMENT STATUS command
    {0x9e,
     0x17,
     16,
     Op::kPassThrough,
     kNeedsReady | kWe,
     {0x9e, 0x17, 0, 0, 0, 0, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll, 0xcf},
     kQuick,
     "GET PHYSICAL ELEMENT STATUS"},
    // SPC-5, REPORT TIMESTAMP command
    {0xa3,
     0x0f,
     12,
     Op::kPassThrough,
     kNeedsReady | kWe,
     {0xa3, 0x0f, 0, 0, 0, 0, kAll, kAll, kAll, kAll},
     kQuick,
     "REPORT TIMESTAMP"},
    // SBC-4, READ DEFECT DATA (12) command
    {0xb7,
     kNone,
     12,
     Op::kPassThrough,
     kNeedsReady | kWe,
     {0xb7, 0x1f, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll},
     kMedium,
     "READ DEFECT DATA(12)"},
};

}  // namespace sluice::scsi::rows
