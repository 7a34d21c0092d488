// Task management (RFC 7143 §11.5, §11.6; SAM-5 §7). A response is sent only when every command
// the function affects has left the backend (DESIGN R5): no retry can be overtaken by it.
#include <algorithm>

#include "iscsi/session.h"
#include "iscsi/session_directory.h"
#include "scsi/report_luns.h"

namespace sluice::iscsi {

using pdu::TaskFunction;
using pdu::TaskResponse;

namespace {

// Peripheral and flat space addressing can name the same LUN (SAM-5 §4.7).
bool same_lun(uint64_t a, uint64_t b) {
  uint64_t x = 0;
  uint64_t y = 0;
  return a == b || (scsi::lun_number(a, &x) && scsi::lun_number(b, &y) && x == y);
}

}  // namespace

void Session::on_task_management(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (parameters_.discovery) return reject(h, pdu::RejectReason::kProtocolError);
  if (h.itt() == pdu::kReservedTag || pdu.data_size != 0) {
    return reject(h, pdu::RejectReason::kInvalidPduField);
  }
  if (table_.find(h.itt())) return reject(h, pdu::RejectReason::kTaskInProgress);
  // Each waits for the backend and none takes a place in the window: bounded like commands.
  if (functions_running_ >= limits::kMaxImmediateCommands) {
    if (h.immediate()) return reject(h, pdu::RejectReason::kImmediateCommandReject);
    return send_task_response(h.itt(), TaskResponse::kFunctionRejected);
  }
  ++functions_running_;
  const auto function = static_cast<TaskFunction>(h.flags() & 0x7f);
  ++task_functions_;
  shard_.counters->task_functions[(h.flags() & 0x7f) % kTaskFunctionSlots].add();
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
      return answer_function(h.itt(), TaskResponse::kReassignNotSupported);
    case TaskFunction::kClearAca:  // ACA is not supported (NORMACA=0)
      break;
  }
  answer_function(h.itt(), TaskResponse::kFunctionNotSupported);
}

void Session::answer_function(uint32_t itt, TaskResponse response) {
  --functions_running_;
  send_task_response(itt, response);
}

void Session::abort_one(const pdu::Bhs& h) {
  Task* task = table_.find(h.u32(20));
  if (!task) return abort_unknown(h);
  if (!same_lun(task->command.lun_field, h.lun())) {
    return answer_function(h.itt(), TaskResponse::kTaskDoesNotExist);
  }
  task->abort_itts.push_back(h.itt());
  if (task->aborting()) return;  // an earlier function aborts it
  // An answered task only waits for data that is discarded.
  if (task->begun() && task->state() != Task::State::kAnswered) {
    task->enter(Task::State::kAborting);
    return nexus_->abort(task->command);
  }
  held_.remove(task);
  end_task(task);
}

// RFC 7143 §11.6.1: a command that has not arrived, but still may by its number, counts as received
// and aborted. If it comes, it is a duplicate.
void Session::abort_unknown(const pdu::Bhs& h) {
  const uint32_t itt = h.itt();
  const uint32_t ref_cmd_sn = h.u32(32);
  if (const auto cmd_sn = early_.cmd_sn_of(h.u32(20))) {
    early_.cancel(*cmd_sn);
    return answer_function(itt, TaskResponse::kFunctionComplete);
  }
  const CommandWindow::Verdict verdict = window_.judge(ref_cmd_sn);
  if (verdict == CommandWindow::Verdict::kOutside || early_.contains(ref_cmd_sn) ||
      !serial_less(ref_cmd_sn, h.cmd_sn())) {
    return answer_function(itt, TaskResponse::kTaskDoesNotExist);
  }
  if (verdict == CommandWindow::Verdict::kEarly) {
    early_.cancel(ref_cmd_sn);
    return answer_function(itt, TaskResponse::kFunctionComplete);
  }
  window_.advance();
  window_.release();
  answer_function(itt, TaskResponse::kFunctionComplete);
  deliver_early();
}

void Session::abort_lun(const pdu::Bhs& h, TaskFunction function) {
  const uint64_t lun = h.lun();
  const uint32_t itt = h.itt();
  drop_unstarted(lun, false, h.cmd_sn());
  const auto reset = [self = std::weak_ptr<Session*>(self_), itt](bool at_owner) {
    const auto alive = self.lock();
    if (!alive || (*alive)->closing_) return;
    (*alive)->answer_function(itt, (*alive)->response_to_reset(at_owner));
  };
  const auto done = [reset] { reset(true); };
  bool found = false;
  switch (function) {
    case TaskFunction::kAbortTaskSet:
      found = nexus_->abort_task_set(lun, done);
      break;
    case TaskFunction::kClearTaskSet:
      found = nexus_->clear_task_set(lun, done);
      break;
    default:
      found = nexus_->logical_unit_reset(lun, reset);
      break;
  }
  if (found) return;
  // Well-known logical units exist, but nothing stays in them long enough to be aborted.
  answer_function(
      itt, nexus_->has_lun(lun) ? TaskResponse::kFunctionComplete : TaskResponse::kLunDoesNotExist);
}

// A host whose function is rejected goes on to a stronger one, and in the end to a new session. It
// would rely on a reset that was reported as complete and not done.
TaskResponse Session::response_to_reset(bool at_owner) const {
  if (at_owner) return TaskResponse::kFunctionComplete;
  return forwarding() ? static_cast<TaskResponse>(kResponseNotOwner)
                      : TaskResponse::kFunctionRejected;
}

void Session::reset_target(const pdu::Bhs& h, bool cold) {
  drop_unstarted(0, true, h.cmd_sn());
  nexus_->target_reset([self = std::weak_ptr<Session*>(self_), itt = h.itt(), cold](bool all) {
    const auto alive = self.lock();
    if (!alive || (*alive)->closing_) return;
    Session& s = **alive;
    s.answer_function(itt, s.response_to_reset(all));
    // RFC 7143 §11.5.1: a cold reset also ends every session of the target; this one once its
    // answer is out.
    if (!cold || !all) return;
    s.shard_.gateway->directory->end_all(s.parameters_.target_name);
    s.host_.finish();
  });
}

// Drops commands that the nexus does not know, and those that only wait for data that is discarded.
// Of the commands that arrived before their order, it drops those that are older than the function
// (RFC 7143 §11.5.1).
void Session::drop_unstarted(uint64_t lun, bool every_lun, uint32_t before_cmd_sn) {
  early_.cancel_commands(before_cmd_sn, [&](const pdu::Bhs& header) {
    return every_lun || same_lun(header.lun(), lun);
  });
  std::vector<Task*> gone;
  table_.for_each([&](Task* t) {
    const bool here = every_lun || same_lun(t->command.lun_field, lun);
    if (here && (!t->begun() || t->state() == Task::State::kAnswered)) gone.push_back(t);
  });
  for (Task* t : gone) {
    held_.remove(t);
    end_task(t);
  }
}

void Session::send_task_response(uint32_t itt, TaskResponse response) {
  pdu::Bhs& h = writer_.start(pdu::Opcode::kTaskManagementResponse);
  h.set_flags(pdu::kFlagFinal);
  h.put8(2, static_cast<uint8_t>(response));
  h.set_itt(itt);
  stamp(h, true);
  writer_.finish();
  host_.output_ready();
}

}  // namespace sluice::iscsi
