// Common code of POPULATE TOKEN and WRITE USING TOKEN.
#pragma once

#include "commands/copies/copy_records.h"
#include "commands/handler.h"
#include "scsi/token_list.h"

namespace sluice::lun {

scsi::TokenBounds token_bounds(const Unit& unit);

// Creates the record of a token operation that starts now; nullptr: the command was answered (its
// list id is in use, or too many copies run).
CopyRecord* start_token_operation(Unit& unit, Command& command, uint32_t list_id, bool populate);

}  // namespace sluice::lun
