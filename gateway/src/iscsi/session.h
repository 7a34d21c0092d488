// The full feature phase of one session (RFC 7143 §4, ERL 0, one connection): requests in command
// order, tasks, data in both directions, task management. It uses no sockets and no clocks.
//
// A PDU passes these files in this order:
//   session.cc            CmdSN order (CommandWindow, EarlyRequests), dispatch, memory for output
//   scsi_command.cc       a task from its command PDU to its completion
//   data_out.cc           immediate, unsolicited and solicited data
//   r2t_scheduler.cc      R2Ts: admission and order (R2tScheduler)
//   data_in.cc            Data-In, SCSI Response, residuals
//   task_management.cc    aborts and resets
//   session_services.cc   NOP, Text, Logout, Async Message, Reject
//
// Threads: one reactor. Life: its Connection owns it, closes it, and destroys it when it is
// drained.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "iscsi/command_window.h"
#include "iscsi/early_requests.h"
#include "iscsi/forwarding_wire.h"
#include "iscsi/login/login.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text_exchange.h"
#include "iscsi/outbox.h"
#include "iscsi/pdu_writer.h"
#include "iscsi/peer_liveness.h"
#include "iscsi/ping_tokens.h"
#include "iscsi/r2t_scheduler.h"
#include "iscsi/session_view.h"
#include "iscsi/shard.h"
#include "iscsi/task.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

// What a session needs from its connection.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // Closes immediately after a violation that has no answer. `why` is one clause for the log.
  virtual void drop(std::string why) = 0;
  // Closes when the outbox is empty.
  virtual void finish() = 0;
  // The outbox has output.
  virtual void output_ready() = 0;
};

class Session final : R2tScheduler::Host {
 public:
  struct Start {
    Parameters parameters;
    std::shared_ptr<lun::Nexus> nexus;  // null: a discovery session
    std::string local_address;
    uint16_t tsih = 0;
    uint16_t cid = 0;
    uint32_t cmd_sn = 0;   // next expected number
    uint32_t stat_sn = 0;  // next number to send
  };
  Session(Shard& shard, SessionHost& host, Outbox& out, Start start);
  ~Session() override;

  // Call it after the login response was queued.
  void greet();
  void on_pdu(pdu::Pdu& pdu);
  void on_data_digest_error(const pdu::Pdu& pdu);
  // The outbox became shorter, or buffers are available: held commands may start.
  void resume();
  void tick(Nanos now, Nanos last_heard);
  // Async Message "logout request" (RFC 7143 §11.9.1 event 1).
  void ask_logout(uint16_t seconds);
  // Ends the session: aborts its commands, and calls `drained` when the backend has completed all
  // of them. No response is sent after this.
  void close(bool lost, std::function<void()> drained);

  const Parameters& parameters() const { return parameters_; }
  uint16_t tsih() const { return tsih_; }
  const CommandWindow& window() const { return window_; }
  uint32_t stat_sn() const { return stat_sn_; }
  const PeerLiveness& liveness() const { return liveness_; }
  void describe(SessionView* view) const;

 private:
  // --- session.cc
  void deliver(pdu::Pdu& pdu, Nanos arrived);
  void deliver_early();
  void announce_window();
  bool lacks_output_memory(Task& task) const;
  void end_task(Task* task);
  void stamp(pdu::Bhs& header, bool takes_stat_sn);
  void keep_fresh();
  bool forwarding() const { return parameters_.forwarded_by != 0; }
  void all_drained();

  // --- scsi_command.cc
  void on_scsi_command(pdu::Pdu& pdu, Nanos arrived);
  bool accept_command(pdu::Pdu& pdu, Task* task);
  bool take_immediate_data(pdu::Pdu& pdu, Task* task);
  void start(Task* task);
  void refuse(Task* task, uint8_t asc, uint8_t ascq);
  void refuse_full(Task* task, const lun::CommandContext& itl);
  static void on_complete(lun::Command& command);
  void complete(Task* task);
  bool end_unanswered(Task* task);

  // --- data_out.cc
  void on_data_out(pdu::Pdu& pdu);
  void accept_unsolicited(pdu::Pdu& pdu, Task* task);
  void accept_solicited(pdu::Pdu& pdu, Task* task);
  void append_data(pdu::Pdu& pdu, Task* task, bool solicited);
  void fail_data(Task* task, uint8_t asc, uint8_t ascq, const pdu::Bhs& header);
  void discard_failed(Task* task, const pdu::Bhs& header);
  uint32_t send_r2t(Task& task, uint32_t offset, uint32_t length) override;
  void on_data_complete(Task* task) override;

  // --- data_in.cc
  void respond(Task* task);
  void respond_for_forwarder(Task* task, uint8_t response);
  uint32_t send_data_in(Task* task, uint32_t bytes, uint8_t residual_flag, uint32_t residual);
  void send_response(Task* task, uint32_t pdus, uint8_t residual_flag, uint32_t residual);

  // --- task_management.cc
  void on_task_management(const pdu::Pdu& pdu);
  void abort_one(const pdu::Bhs& header);
  void abort_unknown(const pdu::Bhs& header);
  void answer_function(uint32_t itt, pdu::TaskResponse response);
  pdu::TaskResponse response_to_reset(bool at_owner) const;
  void abort_lun(const pdu::Bhs& header, pdu::TaskFunction function);
  void reset_target(const pdu::Bhs& header, bool cold);
  void drop_unstarted(uint64_t lun, bool every_lun, uint32_t before_cmd_sn);
  void send_task_response(uint32_t itt, pdu::TaskResponse response);

  // --- session_services.cc
  void on_nop_out(pdu::Pdu& pdu);
  void on_text(const pdu::Pdu& pdu);
  void on_logout(const pdu::Pdu& pdu);
  void send_logout_response(uint32_t itt, uint8_t response);
  void send_ping();
  void send_nop_in(uint32_t transfer_tag, ByteView data);
  uint32_t new_transfer_tag();
  void send_token();
  void reject(const pdu::Bhs& header, pdu::RejectReason reason);

  Shard& shard_;
  SessionHost& host_;
  Outbox& out_;
  PduWriter writer_;
  Parameters parameters_;
  std::shared_ptr<lun::Nexus> nexus_;
  TextExchange text_;
  CommandWindow window_;
  TaskPool pool_;
  const uint32_t immediate_limit_;  // maximum number of immediate tasks
  TaskTable table_;
  const uint16_t tsih_;
  const uint16_t cid_;
  uint32_t stat_sn_;
  uint32_t next_transfer_tag_ = 1;
  bool logout_asked_ = false;
  bool closing_ = false;
  bool drained_ = false;
  std::vector<std::function<void()>> on_drained_;
  // Functions that may be called after the session's end have a weak reference.
  std::shared_ptr<Session*> self_ = std::make_shared<Session*>(this);

  EarlyRequests early_;
  TaskQueue held_;  // accepted; they wait for memory for their output
  R2tScheduler r2t_;
  size_t reads_running_ = 0;  // number of data-in bytes that executing commands may produce
  uint32_t immediate_tasks_ = 0;
  uint32_t functions_running_ = 0;  // task management functions without a response
  uint32_t announced_max_;          // the last MaxCmdSN that was sent

  PeerLiveness liveness_;
  PingTokens tokens_;  // for a forwarding session
  Nanos token_sent_ = 0;

  Nanos started_;
  uint64_t commands_ = 0;
  uint64_t data_in_bytes_ = 0;
  uint64_t data_out_bytes_ = 0;
  uint64_t task_functions_ = 0;
  uint64_t rejects_ = 0;
};

}  // namespace sluice::iscsi
