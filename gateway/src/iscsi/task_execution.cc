#include "iscsi/task_execution.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/safety_mutation.h"
#include "iscsi/forwarding_wire.h"
#include "scsi/report_luns.h"
#include "scsi/sense.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::iscsi {

TaskExecution::TaskExecution(const SessionContext& session, SessionTasks& tasks,
                             SessionWriter& writer, R2tScheduler& r2t, DataInSender& data_in,
                             FunctionResponses& functions)
    : session_(session),
      shard_(session.shard),
      nexus_(session.nexus.get()),
      tasks_(tasks),
      writer_(writer),
      r2t_(r2t),
      data_in_(data_in),
      functions_(functions),
      answers_(session.shard.answers) {}

void TaskExecution::attach(Task* task) {
  task->execution = this;
  task->command.context = task;
  task->command.complete = &TaskExecution::on_complete;
  task->command.on_detached = &TaskExecution::on_detached;
}

// `first`: no task has waited longer. Only that one may use what the session has left, because a
// large READ would otherwise wait forever behind small ones. Others use the share of their LUN.
bool TaskExecution::may_start(Task& task, bool first) const {
  if (!task.expects_data_in()) return true;
  const uint32_t bytes = task.expected_length;
  const size_t queued = writer_.queued_bytes();
  if (first && shard_.write_quota.admits_read(bytes, queued + reads_.total(), task.refused_since)) {
    return true;
  }
  if (mutation_disables(Guard::kReadShare)) return false;
  const uint64_t lun = task.command.lun_field;
  return reads_.total() != reads_.of(lun) && reads_.within_share(lun, bytes) &&
         shard_.write_quota.admits_read(bytes, queued + reads_.of(lun), task.refused_since);
}

void TaskExecution::admit(Task* task) {
  const unsigned slot = ReadsInProgress::slot(task->command.lun_field);
  if (held_in_slot_[slot] == 0 && may_start(*task, held_.empty())) return start(task);
  held_.push(task);
  ++held_in_slot_[slot];
  held_slots_ |= 1u << slot;
}

void TaskExecution::stop_waiting(Task* task) {
  if (!held_.remove(task)) return;
  const unsigned slot = ReadsInProgress::slot(task->command.lun_field);
  if (--held_in_slot_[slot] == 0) held_slots_ &= ~(1u << slot);
}

// The first waiting task of a slot that may start; nullptr: none.
Task* TaskExecution::next_to_start() const {
  uint32_t seen = 0;
  for (Task* task = held_.front(); task && seen != held_slots_; task = task->next) {
    const uint32_t slot = 1u << ReadsInProgress::slot(task->command.lun_field);
    if ((seen & slot) != 0) continue;
    if (may_start(*task, task == held_.front())) return task;
    seen |= slot;
  }
  return nullptr;
}

bool TaskExecution::resume() {
  while (!session_.closing()) {
    Task* task = next_to_start();
    if (task == nullptr) return held_.empty();
    stop_waiting(task);
    start(task);
  }
  return true;
}

void TaskExecution::refuse(Task* task, uint8_t asc, uint8_t ascq) {
  lun::Command& c = task->command;
  c.status = scsi::Status::kCheckCondition;
  c.sense_size = static_cast<uint8_t>(
      scsi::encode(scsi::Sense::make(scsi::SenseKey::kAbortedCommand, asc, ascq), false, c.sense));
  c.data_in_size = 0;
  complete(task);
}

void TaskExecution::start(Task* task) {
  lun::Command& c = task->command;
  if (c.fresh_until != 0 && shard_.now > c.fresh_until) [[unlikely]] {
    c.outcome = lun::Outcome::kStale;
    return complete(task);
  }
  if (task->charged != 0) {
    lun::CommandContext* itl = nexus_->use(c.lun_field);
    if (itl && shard_.write_quota.full(*itl)) [[unlikely]]
      return refuse_full(task, *itl);
    if (itl) r2t_.begin(task, itl);
  }
  task->enter(Task::State::kExecuting);
  reads_.begin(c.lun_field, c.expected_data_in);
  // Data for a command that needs none is discarded.
  const uint32_t announced = std::exchange(task->wanted, 0);
  if (!nexus_->begin(c)) return;  // it executes, or has ended: the task may be gone
  task->enter(Task::State::kNeedsData);
  task->wanted = std::min(c.data_out_wanted, announced);
  task->solicited = task->received;
  r2t_.continue_task(task);
}

// The unit completes nothing, or less than is written to it (SAM-5 §5.3.1: TASK SET FULL). Hosts
// repeat the command later.
void TaskExecution::refuse_full(Task* task, const lun::CommandContext& itl) {
  lun::Command& c = task->command;
  c.status = scsi::Status::kTaskSetFull;
  itl.unit().statistics().shard(shard_.context.reactor).fail(lun::Failure::kBusy);
  complete(task);
}

void TaskExecution::on_complete(lun::Command& command) {
  Task* task = static_cast<Task*>(command.context);
  TaskExecution& execution = *task->execution;
  execution.r2t_.release_for_unit(task);
  execution.reads_.end(command.lun_field, command.expected_data_in);
  execution.complete(task);
}

void TaskExecution::on_detached(lun::Command& command) {
  Task* task = static_cast<Task*>(command.context);
  task->execution->detach(task);
}

// A command that another nexus aborted still gets TASK ABORTED, so it keeps its tag.
void TaskExecution::detach(Task* task) {
  if (session_.closing() || task->state() == Task::State::kDetached) return;
  if (!task->aborting() && task->command.abort != lun::Abort::kSilent) return;
  tasks_.detach(task);
  answer_aborts(task);
  writer_.announce_window();
}

void TaskExecution::complete(Task* task) {
  lun::Command& c = task->command;
  if (task->state() == Task::State::kDetached) return end(task);
  if (end_unanswered(task)) return;
  if (task->state() == Task::State::kFailing && !session_.closing()) {
    task->enter(Task::State::kExecuting);
    c.abort = lun::Abort::kNone;
    return refuse(task, task->fail_asc, task->fail_ascq);
  }
  if (session_.closing() || task->aborting() || c.abort == lun::Abort::kSilent) return end(task);
  if (c.aborted()) {
    // TAS=1: another nexus aborted it (SAM-5 §5.3.1). Announced data will be discarded.
    c.status = scsi::Status::kTaskAborted;
    c.sense_size = 0;
    c.data_in_size = 0;
    return respond(task);
  }
  if (task->announces_data()) {
    // The initiator still sends the announced data. Until then its tag is in use.
    return task->enter(Task::State::kAnswered);
  }
  respond(task);
}

// Ends a task for which no response would be true. If it returns true, the task may be gone.
bool TaskExecution::end_unanswered(Task* task) {
  const lun::Command& c = task->command;
  if (session_.closing() || task->aborting() || task->state() == Task::State::kFailing)
    return false;
  if (session_.forwarding()) {
    uint8_t response = 0;
    if (c.outcome == lun::Outcome::kUnknown) response = kResponseUnknown;
    if (c.outcome == lun::Outcome::kNotOwner) response = kResponseNotOwner;
    if (c.outcome == lun::Outcome::kStale) response = kResponseStale;
    if (c.abort == lun::Abort::kSilent) response = kResponseAborted;
    if (response == 0) return false;
    tasks_.release_number(task);
    data_in_.send_forwarder_answer(*task, response);
    end(task);
    return true;
  }
  if (c.outcome != lun::Outcome::kUnknown && c.outcome != lun::Outcome::kStale) return false;
  // DESIGN R3, R6: no response would be true. The host loses the path and repeats the command on
  // another one.
  const bool stale = c.outcome == lun::Outcome::kStale;
  end(task);
  session_.host.drop(stale ? "a command became stale before it could be submitted"
                           : "the outcome of a command that must not be executed twice is unknown");
  return true;
}

// The response frees the number in the window.
void TaskExecution::respond(Task* task) {
  answers_.add(task->command.arrived, shard_.now);
  tasks_.release_number(task);
  data_in_.send_answer(task);
  end(task);
}

void TaskExecution::end_failed(Task* task) {
  if (!task->begun()) return refuse(task, task->fail_asc, task->fail_ascq);
  task->enter(Task::State::kFailing);
  nexus_->abort(task->command);  // completes it: it only waited for data
}

void TaskExecution::announced_data_ended(Task* task) {
  task->unsolicited_data = Task::Unsolicited::kComplete;
  if (task->state() == Task::State::kAnswered) respond(task);
}

void TaskExecution::abort(Task* task, uint32_t function_itt) {
  task->abort_itts.push_back(function_itt);
  if (task->aborting()) return;  // an earlier function aborts it
  // An answered task only waits for data that is discarded.
  if (task->begun() && task->state() != Task::State::kAnswered) {
    task->enter(Task::State::kAborting);
    // Another nexus aborted it before.
    if (task->command.detached) return detach(task);
    return nexus_->abort(task->command);
  }
  stop_waiting(task);
  end(task);
}

template <class F>
void TaskExecution::end_unstarted_if(F&& matches) {
  std::vector<Task*> gone;
  tasks_.for_each([&](Task* t) {
    const bool unstarted = !t->begun() || t->state() == Task::State::kAnswered;
    if (unstarted && matches(*t)) gone.push_back(t);
  });
  for (Task* t : gone) {
    stop_waiting(t);
    end(t);
  }
}

void TaskExecution::end_unstarted(uint64_t lun_field) {
  end_unstarted_if(
      [lun_field](const Task& t) { return scsi::same_lun(t.command.lun_field, lun_field); });
}

void TaskExecution::end_all_unstarted() {
  end_unstarted_if([](const Task&) { return true; });
}

void TaskExecution::answer_aborts(Task* task) {
  for (const uint32_t itt : task->abort_itts) {
    if (!session_.closing()) functions_.answer(itt, pdu::TaskResponse::kFunctionComplete);
  }
  task->abort_itts.clear();
}

void TaskExecution::end(Task* task) {
  if (task->state() != Task::State::kDetached) tasks_.remove(task);
  const bool cut_off = r2t_.end(task);
  task->command.data_out.clear();
  task->command.data_in.clear();
  task->execution = nullptr;
  answer_aborts(task);
  tasks_.give_back(task);
  writer_.announce_window();
  r2t_.admit_others(cut_off);
}

}  // namespace sluice::iscsi
