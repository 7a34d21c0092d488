// The answer of a task: Data-In PDUs (RFC 7143 §11.7), the status with the last of them where that
// is allowed, else a SCSI Response (§11.4), and residual counts (§11.4.5).
//
// Threads: one reactor.
#pragma once

#include <cstdint>

#include "iscsi/session_context.h"
#include "iscsi/session_writer.h"
#include "iscsi/task.h"

namespace sluice::iscsi {

class DataInSender {
 public:
  DataInSender(const SessionContext& session, SessionWriter& writer)
      : forwarding_(session.forwarding()),
        parameters_(session.parameters),
        counters_(*session.shard.counters),
        writer_(writer) {}

  // The answer of a command that has ended. The caller ends the task.
  void send_answer(Task* task);
  // An answer that is no SCSI status: a Response code of forwarding_wire.h.
  void send_forwarder_answer(const Task& task, uint8_t response);

  uint64_t bytes() const { return bytes_; }  // of all Data-In

 private:
  void check_direction(Task* task);
  uint32_t send_data_in(Task* task, uint32_t bytes, uint8_t residual_flag, uint32_t residual);
  void send_response(Task* task, uint32_t pdus, uint8_t residual_flag, uint32_t residual);

  const bool forwarding_;
  const Parameters& parameters_;
  Counters& counters_;
  SessionWriter& writer_;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::iscsi
