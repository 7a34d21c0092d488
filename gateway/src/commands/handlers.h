// The functions that execute the operations of scsi::command_table(): one declaration per
// scsi::Operation, named after it. operation() in handlers.cc is the only dispatch.
#pragma once

#include "commands/handler.h"

namespace sluice::lun {

// Checks a CDB before its data is requested: fills command.range and command.data_out_wanted, and
// says which blocks must be held. False: *sense is the answer (GOOD if sense->key is kNoSense), and
// the handler is not called.
using Prepare = bool (*)(Unit& unit, Command& command, scsi::Sense* sense);

struct OperationEntry {
  Handler handle = nullptr;
  Prepare prepare = nullptr;  // nullptr: requests the parameter list, if any, and holds no blocks
};
const OperationEntry& operation(scsi::Operation operation);

// --- media_*.cc and related files: logical blocks
void handle_read(Unit& unit, Command& command);
void handle_write(Unit& unit, Command& command);
void handle_write_atomic(Unit& unit, Command& command);
void handle_write_and_verify(Unit& unit, Command& command);
void handle_verify(Unit& unit, Command& command);
void handle_write_same(Unit& unit, Command& command);
void handle_unmap(Unit& unit, Command& command);
void handle_get_lba_status(Unit& unit, Command& command);
void handle_compare_and_write(Unit& unit, Command& command);
void handle_or_write(Unit& unit, Command& command);
void handle_pre_fetch(Unit& unit, Command& command);
void handle_synchronize_cache(Unit& unit, Command& command);
void handle_start_stop_unit(Unit& unit, Command& command);

// --- pass_through.cc: commands that the SCSI device behind the unit answers
bool prepare_log_sense(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_pass_through(Unit& unit, Command& command, scsi::Sense* sense);
void handle_pass_through(Unit& unit, Command& command);

// --- info_*.cc: commands that report on the unit
void handle_send_diagnostic(Unit& unit, Command& command);
void handle_test_unit_ready(Unit& unit, Command& command);
void handle_inquiry(Unit& unit, Command& command);
void handle_report_luns(Unit& unit, Command& command);
// The same for any LUN, even without a unit; it clears 3F/0E for the nexus (SPC-5 §6.33.1).
void answer_report_luns(Command& command);
void handle_request_sense(Unit& unit, Command& command);
void handle_mode_sense(Unit& unit, Command& command);
void handle_mode_select(Unit& unit, Command& command);
void handle_log_sense(Unit& unit, Command& command);
void handle_read_capacity(Unit& unit, Command& command);
void handle_report_target_port_groups(Unit& unit, Command& command);
void handle_set_target_port_groups(Unit& unit, Command& command);
void handle_report_supported_operation_codes(Unit& unit, Command& command);
void handle_report_supported_task_management_functions(Unit& unit, Command& command);

// --- reservation_commands.cc
void handle_reserve6(Unit& unit, Command& command);
void handle_release6(Unit& unit, Command& command);
void handle_persistent_reserve_in(Unit& unit, Command& command);
void handle_persistent_reserve_out(Unit& unit, Command& command);

// --- xcopy*.cc, copy_results*.cc, odx*.cc: third-party copies
void handle_extended_copy(Unit& unit, Command& command);
void handle_receive_copy_results(Unit& unit, Command& command);
void handle_populate_token(Unit& unit, Command& command);
void handle_write_using_token(Unit& unit, Command& command);
void handle_receive_rod_token_information(Unit& unit, Command& command);

}  // namespace sluice::lun
