// Task management (RFC 7143 §11.5, §11.6; SAM-5 §7). A response is sent only when every command
// the function affects has left the backend (DESIGN R5): no retry can be overtaken by it.
#include "iscsi/session.h"
#include "iscsi/session_directory.h"

namespace sluice::iscsi {

using pdu::TaskFunction;
using pdu::TaskResponse;

void Session::on_task_management(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (parameters_.discovery) return reject(h, pdu::RejectReason::kProtocolError);
  if (h.itt() == pdu::kReservedTag || pdu.data_size != 0) {
    return reject(h, pdu::RejectReason::kInvalidPduField);
  }
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
      return send_task_response(h.itt(), TaskResponse::kReassignNotSupported);
    case TaskFunction::kClearAca:  // ACA is not supported (NORMACA=0)
      break;
  }
  send_task_response(h.itt(), TaskResponse::kFunctionNotSupported);
}

void Session::abort_one(const pdu::Bhs& h) {
  const uint32_t referenced = h.u32(20);
  const uint32_t ref_cmd_sn = h.u32(32);
  Task* task = table_.find(referenced);
  if (!task) {
    // RFC 7143 §11.6.1: a command that never arrived, but still may, counts as received and gone.
    if (window_.judge(ref_cmd_sn) == CommandWindow::Verdict::kNext && !h.immediate()) {
      window_.advance();
      window_.release();
      deliver_stashed();
      return send_task_response(h.itt(), TaskResponse::kFunctionComplete);
    }
    return send_task_response(h.itt(), TaskResponse::kTaskDoesNotExist);
  }
  if (task->command.lun_field != h.lun()) {
    return send_task_response(h.itt(), TaskResponse::kTaskDoesNotExist);
  }
  const bool waits_for_data_only = task->answered;
  task->aborted = true;
  task->abort_answers = true;
  task->abort_itt = h.itt();
  if (waits_for_data_only) return end_task(task);
  if (task->begun) return nexus_->abort(task->command);
  unhold(task);
  end_task(task);
}

void Session::abort_lun(const pdu::Bhs& h, TaskFunction function) {
  const uint64_t lun = h.lun();
  const uint32_t itt = h.itt();
  drop_unstarted(lun, false);
  auto done = [self = std::weak_ptr<Session*>(self_), itt] {
    const auto alive = self.lock();
    if (!alive || (*alive)->closing_) return;
    (*alive)->send_task_response(itt, TaskResponse::kFunctionComplete);
  };
  bool found = false;
  switch (function) {
    case TaskFunction::kAbortTaskSet:
      found = nexus_->abort_task_set(lun, done);
      break;
    case TaskFunction::kClearTaskSet:
      found = nexus_->clear_task_set(lun, done);
      break;
    default:
      found = nexus_->logical_unit_reset(lun, done);
      break;
  }
  if (!found) send_task_response(itt, TaskResponse::kLunDoesNotExist);
}

void Session::reset_target(const pdu::Bhs& h, bool cold) {
  drop_unstarted(0, true);
  nexus_->target_reset([self = std::weak_ptr<Session*>(self_), itt = h.itt(), cold] {
    const auto alive = self.lock();
    if (!alive || (*alive)->closing_) return;
    Session& s = **alive;
    s.send_task_response(itt, TaskResponse::kFunctionComplete);
    // RFC 7143 §11.5.1: a cold reset also ends every session of the target, this one too.
    if (cold) s.shard_.gateway->directory->end_all(s.parameters_.target_name);
  });
}

// Commands that were not handed to the nexus yet, or only wait for data nobody needs.
void Session::drop_unstarted(uint64_t lun, bool every_lun) {
  std::vector<Task*> gone;
  table_.for_each([&](Task* t) {
    const bool here = every_lun || t->command.lun_field == lun;
    if (here && (!t->begun || t->answered)) gone.push_back(t);
  });
  for (Task* t : gone) {
    unhold(t);
    end_task(t);
  }
}

void Session::unhold(Task* task) {
  Task* previous = nullptr;
  for (Task* t = held_head_; t; previous = t, t = t->next) {
    if (t != task) continue;
    (previous ? previous->next : held_head_) = t->next;
    if (held_tail_ == t) held_tail_ = previous;
    t->next = nullptr;
    return;
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
