// Requests write data from the initiator (R2T, RFC 7143 §11.8): decides which and when, and passes
// complete data on to the nexus.
//
// Three limits apply:
// - limits::kSessionMemory: the data of all tasks that received an R2T
// - WriteBufferQuota: the data of each logical unit on this reactor
// - limits::kMaxSolicited: bytes that were requested and have not arrived, because the answer to a
//   ping may come after all of them (DESIGN R6)
//
// A task is admitted only if there is memory for all of its data. Tasks that each held a part would
// wait for each other. The scheduler also accounts for unsolicited data, which needs no admission.
//
// Threads: one reactor. It may outlive all its tasks, but not its session. While the session
// closes, it sends no R2Ts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "iscsi/login/parameters.h"
#include "iscsi/session_context.h"
#include "iscsi/session_writer.h"
#include "iscsi/shard.h"
#include "iscsi/task.h"
#include "iscsi/transfer_tags.h"
#include "iscsi/write_buffer_quota.h"

namespace sluice::iscsi {

class R2tScheduler final : public WriteBufferQuota::Waiter {
 public:
  R2tScheduler(const SessionContext& session, SessionWriter& writer, TransferTags& transfer_tags);
  ~R2tScheduler() override;
  R2tScheduler(const R2tScheduler&) = delete;

  // If the task needs data and all announced data has arrived: passes the data on if it is
  // complete, else requests more. Does nothing for other tasks.
  void continue_task(Task* task);
  // Unsolicited bytes of the task are buffered.
  void charge(Task* task, uint32_t bytes);
  // The task begins on this LUN: the bytes that it holds already count for the unit.
  void begin(Task* task, lun::CommandContext* itl) { hold_for_unit(task, itl, task->charged); }
  // Bytes requested by an R2T have arrived, or can't arrive any more. An initiator may send more
  // than that.
  void on_solicited_bytes(Task* task, uint32_t bytes);
  // Solicited bytes of the task are buffered.
  void consume(Task* task, uint32_t bytes);
  // Sends no further R2T for the task; those in flight remain.
  void stop_requesting(Task* task);
  // Sends the R2Ts that the limits permit now.
  void request_bursts();
  // Memory may be available again.
  void memory_came_back() override;
  // The unit has completed the command: its data no longer counts for the unit.
  void release_for_unit(Task* task);
  // The task ends: it is removed from all queues, and its bytes are free. True: it was aborted, and
  // the same event may be about to end other tasks.
  [[nodiscard]] bool end(Task* task);
  // Uses the memory that an ended task has freed: immediately, or later if it was aborted.
  void admit_others(bool cut_off);

 private:
  bool try_admit(Task* task);
  void admit(Task* task, uint32_t bytes);
  bool has_room(Task& task) const;
  bool slice_of_another(const Task& task) const;
  void wait_for_memory(Task* task);
  uint32_t next_burst(const Task& task) const;
  void wait_for_r2t(Task* task);
  void request_burst(Task* task);
  uint32_t send_r2t(Task& task, uint32_t offset, uint32_t length);
  void pass_data(Task* task);
  void schedule_r2t();
  void hold_for_unit(Task* task, lun::CommandContext* itl, uint32_t bytes);

  const SessionContext& session_;
  Shard& shard_;
  const Parameters& parameters_;
  lun::Nexus* const nexus_;  // null: a discovery session, which has no tasks
  SessionWriter& writer_;
  TransferTags& transfer_tags_;
  std::vector<Task*> waiting_;          // in R2t::kWaitsMemory, oldest first
  std::vector<Task*> waiting_for_r2t_;  // in R2t::kWaitsForR2t, in the order of admission
  bool in_quota_queue_ = false;
  bool scheduled_ = false;    // schedule_r2t() has posted a task
  uint32_t admitted_ = 0;     // number of admitted tasks
  uint64_t admissions_ = 0;   // number of tasks that were ever admitted
  size_t charged_ = 0;        // sum over all tasks
  uint32_t outstanding_ = 0;  // sum over all tasks
  // Posted functions have a weak reference, because the session may be gone when they run.
  std::shared_ptr<R2tScheduler*> self_ = std::make_shared<R2tScheduler*>(this);
};

}  // namespace sluice::iscsi
