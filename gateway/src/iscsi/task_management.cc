#include "iscsi/task_management.h"

#include "iscsi/forwarding_wire.h"
#include "iscsi/session_directory.h"
#include "scsi/report_luns.h"

namespace sluice::iscsi {

using pdu::TaskFunction;
using pdu::TaskResponse;

void TaskManagement::on_request(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (session_.parameters.discovery) return writer_.reject(h, pdu::RejectReason::kProtocolError);
  if (h.itt() == pdu::kReservedTag || pdu.data_size != 0) {
    return writer_.reject(h, pdu::RejectReason::kInvalidPduField);
  }
  if (tasks_.find(h.itt())) return writer_.reject(h, pdu::RejectReason::kTaskInProgress);
  if (!functions_.begin()) {
    if (h.immediate()) return writer_.reject(h, pdu::RejectReason::kImmediateCommandReject);
    return functions_.refuse(h.itt());
  }
  const auto function = static_cast<TaskFunction>(h.flags() & 0x7f);
  ++requests_;
  session_.shard.counters->task_functions[(h.flags() & 0x7f) % kTaskFunctionSlots].add();
  switch (function) {
    case TaskFunction::kAbortTask:
      return abort_one(h);
    case TaskFunction::kAbortTaskSet:
    case TaskFunction::kClearTaskSet:
    case TaskFunction::kLogicalUnitReset:
      return abort_lun(h, function);
    case TaskFunction::kTargetWarmReset:
      return reset_target(h, false);
    case TaskFunction::kTargetColdReset:
      return reset_target(h, true);
    case TaskFunction::kTaskReassign:
      return functions_.answer(h.itt(), TaskResponse::kReassignNotSupported);
    case TaskFunction::kClearAca:  // ACA is not supported (NORMACA=0)
      break;
  }
  functions_.answer(h.itt(), TaskResponse::kFunctionNotSupported);
}

void TaskManagement::abort_one(const pdu::Bhs& h) {
  Task* task = tasks_.find(h.u32(20));
  if (!task) return abort_unknown(h);
  if (!scsi::same_lun(task->command.lun_field, h.lun())) {
    return functions_.answer(h.itt(), TaskResponse::kTaskDoesNotExist);
  }
  execution_.abort(task, h.itt());
}

// RFC 7143 §11.6.1: a command that has not arrived, but still may by its number, counts as received
// and aborted. If it comes, it is a duplicate.
void TaskManagement::abort_unknown(const pdu::Bhs& h) {
  const uint32_t itt = h.itt();
  const uint32_t ref_cmd_sn = h.u32(32);
  if (const auto cmd_sn = early_.cmd_sn_of(h.u32(20))) {
    early_.cancel(*cmd_sn);
    return functions_.answer(itt, TaskResponse::kFunctionComplete);
  }
  const CommandWindow::Verdict verdict = window_.judge(ref_cmd_sn);
  if (verdict == CommandWindow::Verdict::kOutside || early_.contains(ref_cmd_sn) ||
      !serial_less(ref_cmd_sn, h.cmd_sn())) {
    return functions_.answer(itt, TaskResponse::kTaskDoesNotExist);
  }
  if (verdict == CommandWindow::Verdict::kEarly) {
    early_.cancel(ref_cmd_sn);
    return functions_.answer(itt, TaskResponse::kFunctionComplete);
  }
  window_.advance();
  window_.release();
  functions_.answer(itt, TaskResponse::kFunctionComplete);
}

// It also drops commands that arrived before a gap in CmdSN, if they are older than the function
// (RFC 7143 §11.5.1).
void TaskManagement::abort_lun(const pdu::Bhs& h, TaskFunction function) {
  const uint64_t lun = h.lun();
  const uint32_t itt = h.itt();
  early_.cancel_commands(
      h.cmd_sn(), [lun](const pdu::Bhs& header) { return scsi::same_lun(header.lun(), lun); });
  execution_.end_unstarted(lun);
  const auto reset = [self = std::weak_ptr<TaskManagement*>(self_), itt](bool at_owner) {
    const auto alive = self.lock();
    if (!alive || (*alive)->session_.closing()) return;
    TaskManagement& management = **alive;
    management.functions_.answer(itt, management.response_to_reset(at_owner));
  };
  const auto done = [reset] { reset(true); };
  bool found = false;
  switch (function) {
    case TaskFunction::kAbortTaskSet:
      found = session_.nexus->abort_task_set(lun, done);
      break;
    case TaskFunction::kClearTaskSet:
      found = session_.nexus->clear_task_set(lun, done);
      break;
    default:
      found = session_.nexus->logical_unit_reset(lun, reset);
      break;
  }
  if (found) return;
  // Well-known logical units exist, but nothing stays in them long enough to be aborted.
  functions_.answer(itt, session_.nexus->has_lun(lun) ? TaskResponse::kFunctionComplete
                                                      : TaskResponse::kLunDoesNotExist);
}

// A host whose function is rejected goes on to a stronger one, and in the end to a new session. It
// would rely on a reset that was reported as complete and not done.
TaskResponse TaskManagement::response_to_reset(bool at_owner) const {
  if (at_owner) return TaskResponse::kFunctionComplete;
  return session_.forwarding() ? static_cast<TaskResponse>(kResponseNotOwner)
                               : TaskResponse::kFunctionRejected;
}

void TaskManagement::reset_target(const pdu::Bhs& h, bool cold) {
  early_.cancel_commands(h.cmd_sn(), [](const pdu::Bhs&) { return true; });
  execution_.end_all_unstarted();
  session_.nexus->target_reset(
      [self = std::weak_ptr<TaskManagement*>(self_), itt = h.itt(), cold](bool all) {
        const auto alive = self.lock();
        if (!alive || (*alive)->session_.closing()) return;
        TaskManagement& management = **alive;
        management.functions_.answer(itt, management.response_to_reset(all));
        // RFC 7143 §11.5.1: a cold reset also ends every session of the target; this one once its
        // answer is out.
        if (!cold || !all) return;
        management.session_.shard.gateway->directory->end_all(
            management.session_.parameters.target_name);
        management.session_.host.finish();
      });
}

}  // namespace sluice::iscsi
