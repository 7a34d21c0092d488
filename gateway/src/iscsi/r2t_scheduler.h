// Which data of a session's writes the initiator is asked for, and when (R2T, RFC 7143 §11.8).
// Three bounds hold:
//   limits::kSessionMemory   the data of all tasks that were asked for any
//   WriteBufferQuota         the data of each logical unit on this reactor
//   limits::kMaxSolicited    bytes that were asked for and have not come: the answer to a ping may
//                            come behind all of them (DESIGN R6)
// A task is admitted only when there is memory for all of its data. Tasks that each hold a part
// would wait for each other. It also accounts for unsolicited data, which needs no admission.
//
// Threads: one reactor. It may outlive every task that it knows, but not its session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "iscsi/login/parameters.h"
#include "iscsi/shard.h"
#include "iscsi/task.h"
#include "iscsi/write_buffer_quota.h"

namespace sluice::iscsi {

class R2tScheduler final : public WriteBufferQuota::Waiter {
 public:
  // The session as the scheduler uses it.
  class Host {
   public:
    virtual ~Host() = default;
    // Sends an R2T for this range of the task's data, and returns its target transfer tag.
    virtual uint32_t send_r2t(Task& task, uint32_t offset, uint32_t length) = 0;
    // All data that the task needs is there.
    virtual void on_data_complete(Task* task) = 0;
  };
  R2tScheduler(Shard& shard, const Parameters& parameters, Host& host);
  ~R2tScheduler() override;
  R2tScheduler(const R2tScheduler&) = delete;

  // Asks for nothing any more.
  void close() { closed_ = true; }

  // The task needs data, and has received all that was announced: hands the data over if it is
  // complete, else asks for more. Does nothing for other tasks.
  void continue_task(Task* task);
  // Unsolicited bytes of the task are kept.
  void charge(Task* task, uint32_t bytes);
  // The task begins on this LUN: the unit pays for the bytes that it holds already.
  void begin(Task* task, lun::CommandContext* itl) { hold_for_unit(task, itl, task->charged); }
  // Bytes that an R2T asked for have come, or no longer can. An initiator may send more than that.
  void on_solicited_bytes(Task* task, uint32_t bytes);
  // Solicited bytes of the task are kept.
  void consume(Task* task, uint32_t bytes);
  // Sends no further R2T for the task; those in flight stay so.
  void stop_asking(Task* task);
  // Sends R2Ts for which there is room now.
  void request_bursts();
  // Memory may have come back.
  void memory_came_back() override;
  // The unit has completed the command: it no longer pays for the data.
  void release_for_unit(Task* task);
  // The task ends: it waits for nothing any more, and its bytes are free. True: it was cut off, so
  // the event that ended it may be about to end others, too.
  [[nodiscard]] bool end(Task* task);
  // Gives what an ended task has freed to others: at once, or later if it was cut off.
  void admit_others(bool cut_off);

 private:
  bool try_admit(Task* task);
  void admit(Task* task, uint32_t bytes);
  bool has_room(Task& task) const;
  bool turn_of_another(const Task& task) const;
  void wait_for_memory(Task* task);
  uint32_t next_burst(const Task& task) const;
  void wait_for_turn(Task* task);
  void request_burst(Task* task);
  void schedule_r2t();
  void hold_for_unit(Task* task, lun::CommandContext* itl, uint32_t bytes);

  Shard& shard_;
  const Parameters& parameters_;
  Host& host_;
  std::vector<Task*> waiting_;  // in R2t::kWaitsMemory, oldest first
  std::vector<Task*> asking_;   // in R2t::kWaitsForTurn, first admitted first
  bool in_quota_queue_ = false;
  bool closed_ = false;
  bool scheduled_ = false;    // schedule_r2t() has posted
  uint32_t admitted_ = 0;     // tasks that are admitted now
  uint64_t admissions_ = 0;   // tasks that were admitted so far
  size_t charged_ = 0;        // the sum of all tasks'
  uint32_t outstanding_ = 0;  // the sum of all tasks'
  // A posted function holds this weakly: the session may be gone when it runs.
  std::shared_ptr<R2tScheduler*> self_ = std::make_shared<R2tScheduler*>(this);
};

}  // namespace sluice::iscsi
