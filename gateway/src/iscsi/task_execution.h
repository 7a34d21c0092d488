// The tasks of a session between their command PDU and their end: they wait until there is memory
// for their output, the nexus executes them, and their answer is sent.
//
// Threads: one reactor. It may outlive all its tasks.
#pragma once

#include <array>
#include <cstdint>

#include "iscsi/answer_times.h"
#include "iscsi/data_in.h"
#include "iscsi/function_responses.h"
#include "iscsi/r2t_scheduler.h"
#include "iscsi/reads_in_progress.h"
#include "iscsi/session_context.h"
#include "iscsi/session_tasks.h"
#include "iscsi/session_writer.h"
#include "iscsi/task.h"

namespace sluice::iscsi {

// Functions that take a task may end it. It is then in its pool again.
class TaskExecution {
 public:
  TaskExecution(const SessionContext& session, SessionTasks& tasks, SessionWriter& writer,
                R2tScheduler& r2t, DataInSender& data_in, FunctionResponses& functions);

  // Connects the completion of the task's command to this object.
  void attach(Task* task);
  // Passes the task to the nexus now, or when there is memory for its output.
  void admit(Task* task);
  // There may be memory for output again. False: tasks still wait for it.
  bool resume();
  // Removes a task that waits for memory for its output; does nothing for another one.
  void stop_waiting(Task* task);
  // Ends a task that the nexus does not execute with ABORTED COMMAND.
  void refuse(Task* task, uint8_t asc, uint8_t ascq);
  // The data of the task was wrong, and all of it has arrived: ends it with its failure.
  void end_failed(Task* task);
  // The last announced data of a task that ignores it has arrived.
  void announced_data_ended(Task* task);
  // ABORT TASK with this initiator task tag: it is answered when the task has ended or is detached.
  void abort(Task* task, uint32_t function_itt);
  // Ends the tasks of a LUN that the nexus does not execute: tasks that wait for memory, and tasks
  // that wait only for data that is discarded.
  void end_unstarted(uint64_t lun_field);
  void end_all_unstarted();

  const AnswerTimes& answers() const { return answers_; }

 private:
  static void on_complete(lun::Command& command);
  static void on_detached(lun::Command& command);
  void detach(Task* task);
  bool may_start(Task& task, bool first) const;
  Task* next_to_start() const;
  void start(Task* task);
  void refuse_full(Task* task, const lun::CommandContext& itl);
  void complete(Task* task);
  bool end_unanswered(Task* task);
  void respond(Task* task);
  template <class F>
  void end_unstarted_if(F&& matches);
  void answer_aborts(Task* task);
  void end(Task* task);

  const SessionContext& session_;
  Shard& shard_;
  lun::Nexus* const nexus_;  // null: a discovery session, which has no tasks
  SessionTasks& tasks_;
  SessionWriter& writer_;
  R2tScheduler& r2t_;
  DataInSender& data_in_;
  FunctionResponses& functions_;
  // Tasks that wait for memory for their output, in order for each slot of ReadsInProgress.
  TaskQueue held_;
  std::array<uint16_t, ReadsInProgress::kSlots> held_in_slot_{};
  uint32_t held_slots_ = 0;  // bit n: held_in_slot_[n] is not 0
  ReadsInProgress reads_;
  AnswerTimes answers_;
};

}  // namespace sluice::iscsi
