#include "commands/handlers.h"

#include "commands/media_range.h"

namespace sluice::lun {
namespace {

using scsi::Operation;

constexpr size_t kOperations = static_cast<size_t>(Operation::kCount);

// Asked for by nothing in the command table.
void handle_nothing(Unit&, Command& command) {
  finish_sense(command, scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x20, 0x00));
}

struct Dispatch {
  std::array<OperationEntry, kOperations> entries;
  constexpr void set(Operation o, Handler handle, Prepare prepare = prepare_parameter_list) {
    entries[static_cast<size_t>(o)] = {handle, prepare};
  }
};

constexpr void add_media(Dispatch& d) {
  d.set(Operation::kRead, handle_read, prepare_read);
  d.set(Operation::kWrite, handle_write, prepare_write);
  d.set(Operation::kWriteAtomic, handle_write_atomic, prepare_write_atomic);
  d.set(Operation::kWriteAndVerify, handle_write_and_verify, prepare_write_and_verify);
  d.set(Operation::kVerify, handle_verify, prepare_verify);
  d.set(Operation::kWriteSame, handle_write_same, prepare_write_same);
  d.set(Operation::kUnmap, handle_unmap);
  d.set(Operation::kGetLbaStatus, handle_get_lba_status, prepare_blocks_only);
  d.set(Operation::kCompareAndWrite, handle_compare_and_write, prepare_compare_and_write);
  d.set(Operation::kOrWrite, handle_or_write, prepare_write);
  d.set(Operation::kPreFetch, handle_pre_fetch, prepare_blocks_only);
  d.set(Operation::kSynchronizeCache, handle_synchronize_cache, prepare_blocks_only);
  d.set(Operation::kStartStopUnit, handle_start_stop_unit);
}

constexpr void add_information(Dispatch& d) {
  d.set(Operation::kTestUnitReady, handle_test_unit_ready);
  d.set(Operation::kSendDiagnostic, handle_send_diagnostic);
  d.set(Operation::kInquiry, handle_inquiry);
  d.set(Operation::kReportLuns, handle_report_luns);
  d.set(Operation::kRequestSense, handle_request_sense);
  d.set(Operation::kModeSense, handle_mode_sense);
  d.set(Operation::kModeSelect, handle_mode_select);
  d.set(Operation::kLogSense, handle_log_sense, prepare_log_sense);
  d.set(Operation::kPassThrough, handle_pass_through, prepare_pass_through);
  d.set(Operation::kReadCapacity, handle_read_capacity);
  d.set(Operation::kReportTargetPortGroups, handle_report_target_port_groups);
  d.set(Operation::kSetTargetPortGroups, handle_set_target_port_groups);
  d.set(Operation::kReportSupportedOperationCodes, handle_report_supported_operation_codes);
  d.set(Operation::kReportSupportedTaskManagementFunctions,
        handle_report_supported_task_management_functions);
}

constexpr void add_reservations_and_copies(Dispatch& d) {
  d.set(Operation::kReserve6, handle_reserve6);
  d.set(Operation::kRelease6, handle_release6);
  d.set(Operation::kPersistentReserveIn, handle_persistent_reserve_in);
  d.set(Operation::kPersistentReserveOut, handle_persistent_reserve_out);
  d.set(Operation::kExtendedCopy, handle_extended_copy);
  d.set(Operation::kReceiveCopyResults, handle_receive_copy_results);
  d.set(Operation::kPopulateToken, handle_populate_token);
  d.set(Operation::kWriteUsingToken, handle_write_using_token);
  d.set(Operation::kReceiveRodTokenInformation, handle_receive_rod_token_information);
}

constexpr Dispatch make_dispatch() {
  Dispatch d{};
  for (OperationEntry& entry : d.entries) entry = {handle_nothing, prepare_parameter_list};
  add_media(d);
  add_information(d);
  add_reservations_and_copies(d);
  return d;
}

constexpr Dispatch kDispatch = make_dispatch();

}  // namespace

const OperationEntry& operation(Operation operation) {
  return kDispatch.entries[static_cast<size_t>(operation)];
}

}  // namespace sluice::lun
