// Task management of a session (RFC 7143 §11.5, §11.6; SAM-5 §7). A response is sent when every
// command that the function affects has left the backend, or is detached (lun::Command) and holds
// its blocks: no retry is overtaken by it (DESIGN R5).
//
// Threads: one reactor.
#pragma once

#include <cstdint>
#include <memory>

#include "iscsi/command_window.h"
#include "iscsi/early_requests.h"
#include "iscsi/function_responses.h"
#include "iscsi/session_context.h"
#include "iscsi/session_tasks.h"
#include "iscsi/session_writer.h"
#include "iscsi/task_execution.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class TaskManagement {
 public:
  TaskManagement(const SessionContext& session, CommandWindow& window, EarlyRequests& early,
                 SessionTasks& tasks, SessionWriter& writer, FunctionResponses& functions,
                 TaskExecution& execution)
      : session_(session),
        window_(window),
        early_(early),
        tasks_(tasks),
        writer_(writer),
        functions_(functions),
        execution_(execution) {}

  // May advance the window: an early request may be the next one then.
  void on_request(const pdu::Pdu& pdu);

  uint64_t requests() const { return requests_; }  // number of functions that began

 private:
  void abort_one(const pdu::Bhs& header);
  void abort_unknown(const pdu::Bhs& header);
  void abort_lun(const pdu::Bhs& header, pdu::TaskFunction function);
  void reset_target(const pdu::Bhs& header, bool cold);
  pdu::TaskResponse response_to_reset(bool at_owner) const;

  const SessionContext& session_;
  CommandWindow& window_;
  EarlyRequests& early_;
  SessionTasks& tasks_;
  SessionWriter& writer_;
  FunctionResponses& functions_;
  TaskExecution& execution_;
  uint64_t requests_ = 0;
  // Functions that may be called after the session's end have a weak reference.
  std::shared_ptr<TaskManagement*> self_ = std::make_shared<TaskManagement*>(this);
};

}  // namespace sluice::iscsi
