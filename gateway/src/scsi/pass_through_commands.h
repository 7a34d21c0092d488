// Rows of the command table: commands that a SCSI device behind a unit answers itself, byte for
// byte. They exist only for units whose medium is one (Support::pass_through).
//
// What is here is safe to hand on, that is: it reads, it says nothing about identity, ports,
// reservations or other initiators, and it leaves the device as it was. LOG SENSE is among them by
// its handler. On purpose not here, so refused 05/20/00 like every unknown code:
//   FORMAT UNIT 04h, SANITIZE 48h, REASSIGN BLOCKS 07h, WRITE LONG 3Fh/9Fh-11h, REMOVE ELEMENT AND
//   TRUNCATE 9Eh-18h (all of SBC-4): destroy data, of every initiator, past its reservations' words
//   WRITE BUFFER 3Bh, LOG SELECT 4Ch, SET TIMESTAMP A4h-0Fh, SET IDENTIFYING
//   INFORMATION A4h-06h, BACKGROUND CONTROL 9Eh-15h: change the device (firmware, settings)
//   READ BUFFER modes but 02h and 03h: vendor specific, echo buffers shared between initiators,
//   error history whose reading locks it (SPC-5, READ BUFFER(10) command)
//   SECURITY PROTOCOL IN/OUT A2h/B5h, ATA PASS-THROUGH 85h/A1h, variable-length CDBs 7Fh: carry
//   commands of other protocols, which nobody here could look at
//   REPORT IDENTIFYING INFORMATION A3h-05h, READ MEDIA SERIAL NUMBER ABh-01h, REPORT ALIASES
//   A3h-0Bh: identity is ours (DESIGN R13)
//   RESERVE, RELEASE, PERSISTENT RESERVE, EXTENDED COPY, target port groups: ours, in other rows
// Reservations: where the tables of commands that are allowed beside a reservation of another nexus
// (SPC-5 and SBC-4, Reservations) let each kind of command through, the stricter reading is taken:
// none, or WRITE EXCLUSIVE only.
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
