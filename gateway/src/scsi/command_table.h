// Every command the gateway knows, declared once: what it is called, how long its CDB is, which
// bits of it are used, who may run it and which operation it names. REPORT SUPPORTED OPERATION
// CODES, CDB validation and the gate all read this table; nothing else lists opcodes.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "scsi/command_info.h"
#include "scsi/sense.h"

namespace sluice::scsi {

std::span<const CommandInfo> command_table();

// What a unit can do beyond the rest of the table. Commands it can't do don't exist for it: they
// are neither found nor reported.
struct Support {
  bool unmap = true;             // UNMAP: the backend can deallocate
  bool write_atomic = false;     // WRITE ATOMIC: the backend is atomic over power loss
  bool third_party_copy = true;  // EXTENDED COPY(LID1), RECEIVE COPY RESULTS
  bool tokens = true;            // POPULATE TOKEN, WRITE USING TOKEN, RECEIVE ROD TOKEN INFORMATION
  bool write_same_unmap = true;  // the UNMAP bit of WRITE SAME
  bool anchor = false;           // the ANCHOR bit of WRITE SAME and UNMAP
  bool pass_through = false;     // the medium is a SCSI device that answers for itself
  bool operator==(const Support&) const = default;
};
bool supported(const CommandInfo& info, const Support& support);

// Flags of one CDB: those of its command, but for the commands whose bits decide. START STOP UNIT
// with START set and no power condition is allowed under any reservation (SBC-4 §4.17);
// VERIFY without BYTCHK and WRITE SAME with NDOB take no data.
uint16_t flags_of(const CommandInfo& info, ByteView cdb);

// CDB usage data of a command as a unit supports it: info.usage without the bits for what the
// unit lacks.
void usage_of(const CommandInfo& info, const Support& support, uint8_t (&usage)[16]);

// Finds the entry for a CDB of at least 1 byte. nullptr when the opcode is unknown, the service
// action is unknown or the CDB is too short; *sense then says which: 05/20/00 for an unknown
// opcode, 05/24/00 with the field pointer at the service action. Also checks that no reserved bit
// of the CDB is set (05/24/00, field pointer at the most significant offending bit), and that
// NACA (CONTROL byte bit 2) is clear.
const CommandInfo* find_command(ByteView cdb, Sense* sense);
// As above for a unit that supports only some of the table.
const CommandInfo* find_command(ByteView cdb, const Support& support, Sense* sense);

// The entry for an opcode and service action, whatever the CDB says; nullptr: there is none.
// `service_action` is ignored for opcodes without service actions.
const CommandInfo* lookup_command(uint8_t opcode, uint16_t service_action);

}  // namespace sluice::scsi
