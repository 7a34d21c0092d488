// Data from the initiator (RFC 7143 §11.7): immediate and unsolicited, within FirstBurstLength, and
// solicited by R2T (r2t_scheduler.h). DataPDUInOrder and DataSequenceInOrder are Yes, so the offset
// of each segment is known before it comes.
//
// Threads: one reactor.
#pragma once

#include <cstdint>

#include "iscsi/r2t_scheduler.h"
#include "iscsi/session_context.h"
#include "iscsi/session_tasks.h"
#include "iscsi/session_writer.h"
#include "iscsi/task.h"
#include "iscsi/task_execution.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class DataOutReceiver {
 public:
  DataOutReceiver(const SessionContext& session, SessionTasks& tasks, SessionWriter& writer,
                  R2tScheduler& r2t, TaskExecution& execution)
      : parameters_(session.parameters),
        counters_(*session.shard.counters),
        tasks_(tasks),
        writer_(writer),
        r2t_(r2t),
        execution_(execution) {}

  // The data segment of the task's command PDU. False: the task was refused, and may be gone.
  bool accept_immediate(pdu::Pdu& pdu, Task* task);
  void on_data_out(pdu::Pdu& pdu);
  // The data segment of this Data-Out was damaged.
  void on_digest_error(const pdu::Pdu& pdu);

  uint64_t bytes() const { return bytes_; }  // of all data from the initiator

 private:
  void accept_unsolicited(pdu::Pdu& pdu, Task* task);
  void accept_solicited(pdu::Pdu& pdu, Task* task);
  void append_data(pdu::Pdu& pdu, Task* task, bool solicited);
  void fail_data(Task* task, uint8_t asc, uint8_t ascq, const pdu::Bhs& header);
  void discard_failed(Task* task, const pdu::Bhs& header);

  const Parameters& parameters_;
  Counters& counters_;
  SessionTasks& tasks_;
  SessionWriter& writer_;
  R2tScheduler& r2t_;
  TaskExecution& execution_;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::iscsi
