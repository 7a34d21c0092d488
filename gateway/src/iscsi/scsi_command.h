// SCSI Command PDUs of a session (RFC 7143 §11.3): each becomes a task.
//
// Threads: one reactor.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "iscsi/command_freshness.h"
#include "iscsi/command_window.h"
#include "iscsi/data_out.h"
#include "iscsi/session_context.h"
#include "iscsi/session_tasks.h"
#include "iscsi/session_writer.h"
#include "iscsi/task.h"
#include "iscsi/task_execution.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class ScsiCommandIntake {
 public:
  ScsiCommandIntake(const SessionContext& session, CommandWindow& window, SessionTasks& tasks,
                    SessionWriter& writer, const CommandFreshness& freshness,
                    DataOutReceiver& data_out, TaskExecution& execution)
      : session_(session),
        window_(window),
        tasks_(tasks),
        writer_(writer),
        freshness_(freshness),
        data_out_(data_out),
        execution_(execution) {}

  // The number of the PDU, unless it is immediate, stays occupied until its task ends. `arrived`:
  // when the PDU was received.
  void on_scsi_command(pdu::Pdu& pdu, Nanos arrived);

  uint64_t commands() const { return commands_; }  // number of accepted ones
  uint64_t reads() const { return reads_; }        // READ commands among them
  uint64_t writes() const { return writes_; }      // WRITE commands among them

 private:
  bool accept_command(pdu::Pdu& pdu, Task* task);

  const SessionContext& session_;
  CommandWindow& window_;
  SessionTasks& tasks_;
  SessionWriter& writer_;
  const CommandFreshness& freshness_;
  DataOutReceiver& data_out_;
  TaskExecution& execution_;
  uint64_t commands_ = 0;
  uint64_t reads_ = 0;
  uint64_t writes_ = 0;
};

}  // namespace sluice::iscsi
