// The full feature phase of one session (RFC 7143 §4, ERL 0, one connection): it brings requests in
// CmdSN order, passes each to the object that handles it, and ends. It uses no sockets and no
// clocks.
//
// Threads: one reactor. Life: its Connection owns it, closes it, and destroys it when it is
// drained.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iscsi/command_freshness.h"
#include "iscsi/command_window.h"
#include "iscsi/data_in.h"
#include "iscsi/data_out.h"
#include "iscsi/early_requests.h"
#include "iscsi/function_responses.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text_exchange.h"
#include "iscsi/nop_exchange.h"
#include "iscsi/outbox.h"
#include "iscsi/peer_liveness.h"
#include "iscsi/ping_tokens.h"
#include "iscsi/r2t_scheduler.h"
#include "iscsi/scsi_command.h"
#include "iscsi/session_context.h"
#include "iscsi/session_tasks.h"
#include "iscsi/session_view.h"
#include "iscsi/session_writer.h"
#include "iscsi/shard.h"
#include "iscsi/stuck_share.h"
#include "iscsi/task_execution.h"
#include "iscsi/task_management.h"
#include "iscsi/transfer_tags.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class Session final {
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
  ~Session();
  Session(const Session&) = delete;

  // Call it after the login response was queued.
  void greet();
  void on_pdu(pdu::Pdu& pdu);
  void on_data_digest_error(const pdu::Pdu& pdu);
  // The outbox became shorter, or buffers are available: held commands may start.
  void resume();
  // `last_received`: the time of the last byte from the peer.
  void tick(Nanos last_received);
  // Async Message "logout request" (RFC 7143 §11.9.1 event 1).
  void ask_logout(uint16_t seconds);
  // Ends the session: aborts its commands, and calls `drained` when the backend has completed all
  // of them. `ended` is called before that, when all have completed or are detached (lun::Command):
  // another session may have the nexus. No response is sent after this, except for a logout.
  void close(bool lost, std::function<void()> ended, std::function<void()> drained);

  const Parameters& parameters() const { return context_.parameters; }
  const CommandWindow& window() const { return window_; }
  const PeerLiveness& liveness() const { return liveness_; }
  void describe(SessionView* view) const;

 private:
  void deliver(pdu::Pdu& pdu, Nanos arrived);
  void deliver_early();
  void on_text(const pdu::Pdu& pdu);
  void on_logout(const pdu::Pdu& pdu);
  void send_logout_response(uint32_t itt, uint8_t response);
  void all_ended();
  void all_drained();

  SessionContext context_;
  const uint16_t tsih_;
  const uint16_t cid_;
  TextExchange text_;
  CommandWindow window_;
  EarlyRequests early_;
  PeerLiveness liveness_;
  PingTokens tokens_;  // for a forwarding session
  TransferTags transfer_tags_;
  SessionWriter writer_;
  SessionTasks tasks_;
  StuckShare stuck_share_;
  R2tScheduler r2t_;
  DataInSender data_in_;
  FunctionResponses functions_;
  TaskExecution execution_;
  DataOutReceiver data_out_;
  CommandFreshness freshness_;
  ScsiCommandIntake commands_;
  TaskManagement task_management_;
  NopExchange nops_;
  std::vector<std::function<void()>> on_ended_;
  std::vector<std::function<void()>> on_drained_;
  // Functions that may be called after the session's end have a weak reference.
  std::shared_ptr<Session*> self_ = std::make_shared<Session*>(this);
};

}  // namespace sluice::iscsi
