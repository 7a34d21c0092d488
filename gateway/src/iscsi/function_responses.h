// The task management functions of a session that have no response yet, and their responses
// (RFC 7143 §11.6).
//
// Threads: one reactor.
#pragma once

#include <cassert>
#include <cstdint>

#include "base/limits.h"
#include "iscsi/session_writer.h"

namespace sluice::iscsi {

class FunctionResponses {
 public:
  explicit FunctionResponses(SessionWriter& writer) : writer_(writer) {}

  // Each function waits for the backend, and none occupies a number of the window. So they are
  // bounded as commands are. False: the limit is reached.
  bool begin() {
    if (running_ >= limits::kMaxImmediateCommands) return false;
    ++running_;
    return true;
  }
  // The response of a function that began.
  void answer(uint32_t itt, pdu::TaskResponse response) {
    assert(running_ != 0);
    --running_;
    send(itt, response);
  }
  // The response of a function that did not begin.
  void refuse(uint32_t itt) { send(itt, pdu::TaskResponse::kFunctionRejected); }

 private:
  void send(uint32_t itt, pdu::TaskResponse response) {
    pdu::Bhs& h = writer_.start(pdu::Opcode::kTaskManagementResponse);
    h.set_flags(pdu::kFlagFinal);
    h.put8(2, static_cast<uint8_t>(response));
    h.set_itt(itt);
    writer_.stamp_status(h);
    writer_.finish();
    writer_.output_ready();
  }

  SessionWriter& writer_;
  uint32_t running_ = 0;  // functions without a response
};

}  // namespace sluice::iscsi
